package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/joist-autoscaler/joist/services/cli"
)

const commandsHead = `# Command joist

<!-- Written by go generate ./site/reference. -->

Every command, with its flags and examples, as ` + "`joist help`" + ` prints them. [How the commands read a cluster, and what their JSON has](../../services/cli/README.md)
is on a page of its own.

`

// renderCommands returns the page of the command line.
func renderCommands() ([]byte, error) {
	commands := cli.Commands(cli.Env{Now: time.Now})
	commands.InitDefaultCompletionCmd()
	var page bytes.Buffer
	page.WriteString(commandsHead)
	if err := appendCommand(&page, commands); err != nil {
		return nil, err
	}
	return append(bytes.TrimSpace(page.Bytes()), '\n'), nil
}

// appendCommand appends the sections of a command and of its subcommands.
func appendCommand(page *bytes.Buffer, command *cobra.Command) error {
	command.DisableAutoGenTag = true
	var section bytes.Buffer
	if err := doc.GenMarkdown(command, &section); err != nil {
		return fmt.Errorf("writing the section of %s: %w", command.CommandPath(), err)
	}
	page.WriteString(adaptSection(section.String()))
	if command.Name() == "completion" {
		return nil // Its commands are the shells.
	}
	for _, sub := range command.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := appendCommand(page, sub); err != nil {
			return err
		}
	}
	return nil
}

var (
	seeAlso  = regexp.MustCompile(`(?s)### SEE ALSO.*`)
	examples = regexp.MustCompile("(?s)### Examples\n\n```\n(.*?)```")
	headline = regexp.MustCompile(`(?m)^### (.*)$`)
)

// adaptSection adapts a page of cobra to a section of one page: without links to other pages, with parts that are no
// headings, and with a language of each block.
func adaptSection(section string) string {
	section = seeAlso.ReplaceAllString(section, "")
	section = strings.Replace(section, "### Synopsis\n\n", "", 1)
	section = examples.ReplaceAllStringFunc(section, func(block string) string {
		lines := strings.Split(examples.FindStringSubmatch(block)[1], "\n")
		for i, line := range lines {
			lines[i] = strings.TrimPrefix(line, "  ")
		}
		return "Examples:\n\n```sh\n" + strings.Join(lines, "\n") + "```"
	})
	section = headline.ReplaceAllString(section, "$1:")
	var b strings.Builder
	open := false
	for line := range strings.SplitSeq(section, "\n") {
		if line == "```" {
			if open = !open; open {
				line = "```text"
			}
		} else if strings.HasPrefix(line, "```") {
			open = true
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimSpace(b.String()) + "\n\n"
}
