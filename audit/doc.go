// Package audit judges clients and workers: whatever passes between them and a server is
// held, message by message, against the rules of the protocol's document.
//
// An [Auditor] hears what passes, a [Proxy] lets it pass: between programs and a server that
// it stands before. [Stress] has drivers do the same work again and again, under conditions
// that are legal and that libraries get wrong.
package audit
