// Package codec is the contract between a wire protocol and the packages that use the protocol.
//
// A protocol is declared as data: a [Protocol] is a table of message types. Each [Type] has a name, the sides
// that may send it and a list of [Field] declarations in wire order. The strict decoder, the encoder, the
// annotated listing, the dispatch of the reference servers, the generators and the completeness tests of the
// example messages all read this table. No other code enumerates message types.
//
// The table does not declare the framing, that is, where a message ends. A [Session] finds the ends. It
// observes one connection in both directions, because in several protocols the meaning of bytes depends on
// the bytes that were sent in the other direction. A session performs no input or output: it takes bytes and
// returns a [Frame].
//
//	s := gearman.Protocol.NewSession(codec.Options{})
//	var f codec.Frame
//	n, err := s.Decode(codec.Peer, buf, &f)
//	switch {
//	case err == codec.ErrShort:
//		// The next call needs at least n bytes.
//	case err != nil:
//		// a *codec.Error: rule, offset and field; n > 0 if the message can be skipped.
//	default:
//		// f describes buf[:n].
//	}
//
// A session is strict by default. Every violation of the specification is an [Error] that names a [Rule]. A
// session does not enforce the rules that are listed in [Options.Waive].
package codec
