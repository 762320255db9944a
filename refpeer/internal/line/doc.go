// Package line contains what the reference clients and workers share: connections, sequences of messages, quirks, which
// include injected faults, and the reading of tasks as in docs/drivers.md.
package line
