// Package codec is the contract between a wire protocol and everything that
// uses one.
//
// A protocol is data first: a [Protocol] is a table of [Type] rows, each row
// naming a message, who may send it and its [Field] list in wire order. The
// strict decoder, the encoder, the annotated listing, the reference servers'
// dispatch, the generators and the vectors' completeness tests all read those
// rows; nothing else enumerates message types.
//
// What a table cannot say is framing: where a message ends. That is the work of
// a [Session], which watches one connection in both directions, because in
// several protocols bytes mean something only beside what went the other way.
// A session is a pure machine: bytes in, a [Frame] out, no input or output.
//
//	s := gearman.Protocol.NewSession(codec.Options{})
//	var f codec.Frame
//	n, err := s.Decode(codec.Peer, buf, &f)
//	switch {
//	case err == codec.ErrShort:
//		// n bytes are needed before it is worth calling again.
//	case err != nil:
//		// a *codec.Error: rule, offset and field; n > 0 if the message can be skipped.
//	default:
//		// f describes buf[:n].
//	}
//
// Strictness is the default. Every departure from a document is an [Error] that
// names a [Rule]; a leniency is a rule listed in [Options.Waive].
package codec
