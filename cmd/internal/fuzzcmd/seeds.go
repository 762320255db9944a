package fuzzcmd

import (
	"os"
	"slices"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/input"
	"jobwire/pcap"
)

// captureSeeds returns a fuzzer input for each connection in a capture, with the messages of the client or worker.
func captureSeeds(p *codec.Protocol, name string) ([]*input.Input, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	f, err := pcap.NewFile(name, in)
	if err != nil {
		return nil, err
	}
	const most = 200 // messages in one input
	var order []int
	all := map[int]*input.Input{}
	d := pcap.NewDecoder(pcap.Options{Protocol: p}, func(it *pcap.Item) {
		if it.From != codec.Peer || it.Kind > pcap.Violates || it.Frame == nil || len(it.Frame.Raw) == 0 || it.Omitted > 0 {
			return
		}
		c := all[it.Conn.ID]
		if c == nil {
			c = &input.Input{}
			all[it.Conn.ID] = c
			order = append(order, it.Conn.ID)
		}
		if len(c.Steps) < most {
			c.Steps = append(c.Steps, input.Step{ID: len(c.Steps) + 1, Verb: transcript.Raw, Bytes: slices.Clone(it.Frame.Raw)})
		}
	})
	if err := d.Decode(f); err != nil {
		return nil, err
	}
	var seeds []*input.Input
	for _, id := range order {
		seeds = append(seeds, all[id])
	}
	return seeds, nil
}
