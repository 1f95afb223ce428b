package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// formatFlag adds -o with the formats that a command knows, the first by default. A command that
// knows json also knows yaml: it runs as with json, and its output is converted. With wide it runs
// as with table, and report.IsWide reports it. The formats of all commands:
//
//	table, text  for people; a table fits the terminal
//	wide         the table with more columns and whole texts, which does not fit the terminal
//	json, yaml   the documented contract
//	name         one kind/name a line (printNames)
func formatFlag(cmd *cobra.Command, format *string, known ...string) {
	if at := slices.Index(known, "json"); at >= 0 && !slices.Contains(known, "yaml") {
		known = slices.Insert(slices.Clone(known), at+1, "yaml")
	}
	cmd.Flags().StringVarP(format, "output", "o", known[0], "output format: "+joinChoices(known))
	completeFlag(cmd, "output", known...)
	run := cmd.RunE
	cmd.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case !slices.Contains(known, *format):
			return usageError(fmt.Errorf("unknown output format %q (use %s)", *format, joinChoices(known)), c.CommandPath()+" -o "+firstNonEmpty(nearestChoice(*format, known), known[0]))
		case *format == "wide":
			*format = "table"
			if o, ok := c.OutOrStdout().(*output); ok {
				o.isWide = true
			}
			return run(c, args)
		case *format != "yaml":
			return run(c, args)
		}
		*format = "json"
		out := c.OutOrStdout()
		documents := &yamlConverter{to: out}
		c.SetOut(documents)
		defer c.SetOut(out)
		err := run(c, args)
		if rest := documents.finish(); rest != nil {
			return rest
		}
		return err
	}
}

// joinChoices joins choices as "a, b or c".
func joinChoices(list []string) string {
	last := len(list) - 1
	if last < 1 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

// printJSON prints a value as a JSON document. The encoder could indent it too, but would copy a document of 36 MB a dozen
// times, because it does not allocate the memory at once.
func printJSON(w io.Writer, value any) error {
	var compact, indented bytes.Buffer
	encoder := json.NewEncoder(&compact)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	if err := json.Indent(&indented, compact.Bytes(), "", "  "); err != nil {
		return err
	}
	_, err := indented.WriteTo(w)
	return err
}

// printNames prints a line kind/name for each name, as kubectl does with -o name.
func printNames(w io.Writer, kind string, names []string) error {
	var out strings.Builder
	for _, name := range names {
		out.WriteString(kind + "/" + oneLine(name) + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// yamlConverter converts JSON documents to YAML documents. It writes a document at the end of its
// last line, so that a command that refreshes its output does so in YAML too.
type yamlConverter struct {
	to    io.Writer
	text  []byte
	count int
}

// Write converts the document that ends with text, if one does.
func (y *yamlConverter) Write(text []byte) (int, error) {
	y.text = append(y.text, text...)
	if !bytes.HasSuffix(text, []byte("\n")) || !json.Valid(y.text) {
		return len(text), nil
	}
	out, err := formatYAML(y.text)
	if err != nil {
		return 0, err
	}
	if y.count++; y.count > 1 {
		out = append([]byte("---\n"), out...)
	}
	y.text = nil
	if _, err := y.to.Write(out); err != nil {
		return 0, err //nolint:wrapcheck // the error of the command's own output
	}
	return len(text), nil
}

// finish returns an error if the output does not end with a document.
func (y *yamlConverter) finish() error {
	if len(bytes.TrimSpace(y.text)) > 0 {
		return fault.F("converting the output to YAML", fault.Bug, "the output is not JSON").WithHint("-o json")
	}
	return nil
}

// formatYAML converts a JSON document to YAML with sorted fields, as kubectl prints objects.
func formatYAML(document []byte) ([]byte, error) {
	const what = "converting the output to YAML"
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fault.E(what, fault.Bug, err)
	}
	// YAML cannot read JSON's escapes of surrogates, and Go does not write any.
	plain, err := json.Marshal(value)
	if err != nil {
		return nil, fault.E(what, fault.Bug, err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(plain, &root); err != nil {
		return nil, fault.E(what, fault.Bug, err)
	}
	chooseStyles(&root)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(&root); err != nil {
		return nil, fault.E(what, fault.Bug, err)
	}
	return out.Bytes(), nil
}

// oldScalar matches the texts that YAML 1.1, but not YAML 1.2, reads as a boolean or a number.
var oldScalar = regexp.MustCompile(`^(?i:y|n|yes|no|on|off)$|^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`)

// chooseStyles gives nodes that were read from JSON the styles of YAML. Texts that an older parser
// reads as something else stay in double quotes, and texts with characters that output escapes:
// only there does an escape keep its meaning.
func chooseStyles(node *yaml.Node) {
	switch {
	case node.Kind != yaml.ScalarNode && len(node.Content) == 0: // [] and {} stay.
	case node.Tag == "!!str" && (oldScalar.MatchString(node.Value) || strings.ContainsFunc(node.Value, isControl)):
		node.Style = yaml.DoubleQuotedStyle
	default:
		node.Style = 0
	}
	for _, child := range node.Content {
		chooseStyles(child)
	}
}
