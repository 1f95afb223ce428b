// Command licenses writes NOTICE and THIRD_PARTY_LICENSES, which are part of every archive of a release.
//
//	cd integration && go generate ./lint/licenses
//
// It lists the modules that are linked into a shipped command, with the versions that the
// command's own go.mod selects, and identifies the licence of each file LICENSE, COPYING or
// UNLICENSE between a linked package and the root of its module. It fails, and writes
// nothing, when a licence is unknown or not in the list of allowed licences.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:generate go run .

// root is the repository's root, from this folder, in which go generate and go test run.
const root = "../../.."

func main() {
	if err := writeReport(root); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

// writeReport writes both files. It uses no network if the modules of the shipped commands
// are downloaded.
func writeReport(root string) error {
	commands, err := shippedCommands(root)
	if err != nil {
		return err
	}
	modules, err := linkedModules(commands)
	if err != nil {
		return err
	}
	if findings := checkLicenses(modules, allowedModules); len(findings) > 0 {
		return fmt.Errorf("%d modules must not be shipped:\n%s", len(findings), strings.Join(findings, "\n"))
	}
	for name, text := range map[string]string{
		"NOTICE":               renderNotice(modules),
		"THIRD_PARTY_LICENSES": renderLicenses(modules),
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing the licence report: %w", err)
		}
	}
	return nil
}
