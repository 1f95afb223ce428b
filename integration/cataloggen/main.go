// Command cataloggen generates the offline catalogue that shared/catalog embeds. It reads
// four public Go modules as data, at pinned versions with pinned checksums, and writes
// one hardware file, one file of devices, and one market file for each region.
//
// The same inputs produce the same bytes. It is run by hand, because its output is
// reviewed and committed: see README.md.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("out", "../../shared/catalog/data", "directory to write the catalogue's files to")
	flag.Parse()
	if err := run(*out, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "cataloggen:", err)
		os.Exit(1)
	}
}

func run(out string, progress io.Writer) error {
	src, err := load(progress)
	if err != nil {
		return err
	}
	hardware, dropped := mergeHardware(src)
	fmt.Fprintf(progress, "merged   %d types\n", len(hardware.Types))
	for _, reason := range dropped.lines() {
		fmt.Fprintf(progress, "left out %s\n", reason)
	}
	if err := write(out, "hardware", hardware, progress); err != nil {
		return err
	}
	if err := write(out, "devices", src.devices, progress); err != nil {
		return err
	}
	for _, region := range src.regions() {
		market, dropped := mergeMarket(src, hardware, region)
		for _, reason := range dropped.lines() {
			fmt.Fprintf(progress, "left out %s: %s\n", region, reason)
		}
		if err := write(out, "market-"+region, market, progress); err != nil {
			return err
		}
	}
	for _, list := range priceLists(src) {
		if err := write(out, "prices-"+list.Region, list, progress); err != nil {
			return err
		}
	}
	return nil
}

// write writes a value to the named file, and prints its size.
func write(dir, name string, value any, progress io.Writer) error {
	packed, err := pack(value)
	if err != nil {
		return fmt.Errorf("packing %s: %w", name, err)
	}
	path := filepath.Join(dir, name+".json.zst")
	if err := os.WriteFile(path, packed, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	fmt.Fprintf(progress, "wrote    %s, %d bytes\n", path, len(packed))
	return nil
}
