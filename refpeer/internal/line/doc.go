// Package line is what the reference clients and workers of packets share: a connection, the sequences
// that are sent on it, the habits in which a injected fault may lie, and the reading of tasks, as docs/drivers.md
// has them.
package line
