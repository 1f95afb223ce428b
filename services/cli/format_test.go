package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// TestYAML: YAML has the same values as JSON, also texts like numbers, and hidden characters stay
// escaped.
func TestYAML(t *testing.T) {
	for _, tt := range []struct{ name, document, want string }{
		{"sorted fields", `{"kind":"Plan","apiVersion":"v1","nodes":[{"b":1,"a":"x"}]}`, "apiVersion: v1\nkind: Plan\nnodes:\n- a: x\n  b: 1\n"},
		{"empty lists and objects", `{"a":[],"b":{},"c":null,"d":""}`, "a: []\nb: {}\nc: null\nd: \"\"\n"},
		{"texts like other types", `{"a":"true","b":"1.5","c":"2026-11-20","d":"null","e":"no","f":"1:30"}`, "a: \"true\"\nb: \"1.5\"\nc: \"2026-11-20\"\nd: \"null\"\ne: \"no\"\nf: \"1:30\"\n"},
		{"numbers", `{"a":0.0911,"b":9007199254740993,"c":-0.5}`, "a: 0.0911\nb: 9007199254740993\nc: -0.5\n"},
		{"lines", `{"a":"one\ntwo\n"}`, "a: |\n  one\n  two\n"},
		{"an emoji, as JSON may escape it", `{"a":"\ud83d\ude00"}`, "a: \"\\U0001F600\"\n"},
		{"a terminal's sequence", `{"a":"\u001b[2J"}`, "a: \"\\e[2J\"\n"},
		{"a right-to-left override", `{"a":"b\u202ec"}`, "a: \"b\\u202ec\"\n"},
		{"a tag beyond the first plane", `{"a":"b\udb40\udc01"}`, "a: \"b\\U000E0001\"\n"},
		{"a list", `["a"]`, "- a\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var to bytes.Buffer
			y := &yamlConverter{to: &output{w: &to}}
			if _, err := y.Write([]byte(tt.document + "\n")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, to.String()); diff != "" {
				t.Error(diff)
			}
			var got, want any
			if err := errors.Join(yaml.Unmarshal(to.Bytes(), &got), json.Unmarshal([]byte(tt.document), &want), y.finish()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmp.FilterValues(func(a, b any) bool { return isNumber(a) && isNumber(b) }, cmp.Ignore())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestYAMLOfManyDocuments: a document may come in parts, and the next one starts with ---. Text
// that is no JSON is an error.
func TestYAMLOfManyDocuments(t *testing.T) {
	var to bytes.Buffer
	y := &yamlConverter{to: &to}
	for _, part := range []string{"{\n", "\"a\": 1\n", "}\n", "{\"a\": 2}\n"} {
		if _, err := y.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if want := "a: 1\n---\na: 2\n"; to.String() != want || y.finish() != nil {
		t.Errorf("wrote %q, %v; want %q", to.String(), y.finish(), want)
	}
	if _, err := y.Write([]byte("done\n")); err != nil || y.finish() == nil {
		t.Errorf("text that is no JSON is no error: %v", err)
	}
}

// TestFormatFlag: the formats of a command, and what it runs with.
func TestFormatFlag(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
		fail string
	}{
		{nil, "table", ""},
		{[]string{"-o", "wide"}, "table", ""},
		{[]string{"-o", "json"}, "{\n  \"ran\": \"json\"\n}\n", ""},
		{[]string{"-o", "yaml"}, "ran: json\n", ""},
		{[]string{"-o", "ymal"}, "", `unknown output format "ymal" (use table, wide, json or yaml) (try: test -o yaml)`},
		{[]string{"-o", "js"}, "", `unknown output format "js" (use table, wide, json or yaml) (try: test -o json)`},
	} {
		var format string
		var out bytes.Buffer
		cmd := &cobra.Command{Use: "test", SilenceErrors: true, SilenceUsage: true, RunE: func(c *cobra.Command, _ []string) error {
			if format == "json" {
				return printJSON(c.OutOrStdout(), map[string]string{"ran": format})
			}
			_, err := c.OutOrStdout().Write([]byte(format))
			return err
		}}
		formatFlag(cmd, &format, "table", "wide", "json")
		cmd.SetOut(&out)
		cmd.SetArgs(append([]string{}, tt.args...)) // With nil cobra reads the arguments of the test.
		err := cmd.Execute()
		if out.String() != tt.want || (err == nil) != (tt.fail == "") || err != nil && err.Error() != tt.fail {
			t.Errorf("%v: wrote %q, %v", tt.args, out.String(), err)
		}
	}
}

// isNumber reports whether a value is a number, which JSON always reads as a float.
func isNumber(value any) bool {
	switch value.(type) {
	case int, float64:
		return true
	}
	return false
}
