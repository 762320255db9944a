package main

import (
	"bytes"
	"os"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/export"
)

func newExport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write a protocol's contract for other programs",
	}
	cmd.AddCommand(newExportWireshark())
	return cmd
}

func newExportWireshark() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "wireshark PROTOCOL [flags]",
		Short: "Write a Wireshark dissector in Lua",
	}
	onProtocol(cmd, func(cmd *cobra.Command, sys *catalog.Entry) error {
		var script bytes.Buffer
		if err := export.Wireshark(&script, sys.Protocol); err != nil {
			return err
		}
		if file == "-" {
			_, err := cmd.OutOrStdout().Write(script.Bytes())
			return err
		}
		return os.WriteFile(file, script.Bytes(), 0o644)
	})
	cmd.Flags().StringVarP(&file, "output", "o", "-", "write the dissector to `FILE` (-: standard output)")
	return cmd
}
