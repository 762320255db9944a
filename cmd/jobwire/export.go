package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/codec"
	"jobwire/codec/vectors"
	"jobwire/export"
	"jobwire/internal/newfile"
	"jobwire/play"
)

// newExport returns the command "export" with one subcommand for each output format.
func newExport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write definitions of messages for other programs",
	}
	cmd.AddCommand(
		newExportFile("wireshark", "Write a Wireshark dissector in Lua", "dissector", export.Wireshark),
		newExportFile("dictionary", "Write a dictionary for AFL++ and libFuzzer", "dictionary", export.Dictionary),
		newExportFolder("seeds", "Write input files for AFL++, libFuzzer and AFLNet", (*export.Conversation).Raw),
		newExportFolder("aflnet", "Write files for aflnet-replay", (*export.Conversation).AFLNet))
	return cmd
}

// newExportFile returns a command that writes one file.
func newExportFile(name, short, what string, write func(io.Writer, *codec.Protocol) error) *cobra.Command {
	var file string
	cmd := &cobra.Command{Use: name + " PROTOCOL [flags]", Short: short}
	connect.ProtocolCommand(cmd, func(cmd *cobra.Command, sys *catalog.Entry) error {
		var out bytes.Buffer
		if err := write(&out, sys.Protocol); err != nil {
			return err
		}
		if file == "-" {
			_, err := cmd.OutOrStdout().Write(out.Bytes())
			return err
		}
		return newfile.Write(file, out.Bytes())
	})
	cmd.Flags().StringVarP(&file, "output", "o", "-", "write the "+what+" to `FILE` (-: standard output)")
	return cmd
}

// newExportFolder returns a command that writes a file for each conversation in the corpus. content returns the bytes
// of the file.
func newExportFolder(name, short string, content func(*export.Conversation) []byte) *cobra.Command {
	var dir string
	cmd := &cobra.Command{Use: name + " PROTOCOL -o DIR [flags]", Short: short}
	connect.ProtocolCommand(cmd, func(cmd *cobra.Command, sys *catalog.Entry) error {
		if dir == "" {
			return cli.Usage(errors.New("expected a folder for the files (--output DIR), got none"))
		}
		all, err := conversations(sys.Protocol)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		old, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		if len(old) > 0 {
			return cli.Usage(fmt.Errorf("--output: expected an empty or new folder, got %s, which contains %s: choose another folder", dir, old[0].Name()))
		}
		for i := range all {
			if err := newfile.Write(filepath.Join(dir, all[i].Name), content(&all[i])); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", dir, cli.Counted(len(all), "file"))
		return err
	})
	cmd.Flags().StringVarP(&dir, "output", "o", "",
		"write the files to `DIR`, which must be empty or not exist (required)")
	cmd.MarkFlagDirname("output")
	return cmd
}

// conversations returns what the clients and workers send in the valid vectors and conversations of the corpus. It
// generates the values that a server would choose.
func conversations(p *codec.Protocol) ([]export.Conversation, error) {
	corpus, err := vectors.Read(p)
	if err != nil {
		return nil, err
	}
	var all []export.Conversation
	for _, v := range corpus {
		if v.File == vectors.Rejected {
			continue
		}
		events, err := play.Encode(v.Script, time.Unix(0, 0), true)
		if err != nil {
			return nil, err
		}
		first, at := len(all), map[string]int{} // the conversation of each actor
		for _, ev := range events {
			if ev.From != codec.Peer || len(ev.Frame.Raw) == 0 {
				continue
			}
			i, ok := at[ev.Actor.Name]
			if !ok {
				i = len(all)
				at[ev.Actor.Name] = i
				all = append(all, export.Conversation{Name: v.Name + "-" + ev.Actor.Name})
			}
			all[i].Messages = append(all[i].Messages, ev.Frame.Raw)
		}
		if len(all) == first+1 {
			all[first].Name = v.Name
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the corpus of %s contains no messages of clients or workers", p.Title)
	}
	return export.Distinct(all), nil
}
