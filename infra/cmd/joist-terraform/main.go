// Command joist-terraform writes the generated files of the Terraform module into a folder.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/infra/terraform"
)

func main() {
	err := writeFiles(os.Args[1:])
	jsii.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "joist-terraform:", err)
		os.Exit(1)
	}
}

func writeFiles(arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("usage: joist-terraform <folder>")
	}
	// The installed Node may be older than jsii's supported versions, which does not matter here.
	if err := os.Setenv("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "1"); err != nil {
		return err
	}
	folder, err := os.OpenRoot(arguments[0])
	if err != nil {
		return err
	}
	defer folder.Close()
	files, err := terraform.Generate()
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := folder.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
