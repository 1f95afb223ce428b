package planvalidator_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var packed bytes.Buffer
	to := gzip.NewWriter(&packed)
	to.Write([]byte(`{"name": "packed", "pods": [{"metadata": {"name": "a"}}]}`))
	to.Close()
	write("types.json", `[{"name": "m"}]`)
	const group = `{"count": 2, "template": {"metadata": {"name": "p"}}}`
	for _, c := range []struct {
		name, file, text string
		pods, types      int
		// trouble is a part of the error message.
		trouble string
	}{
		{name: "types in a file", file: "a.json", text: `{"instanceTypesFile": "types.json"}`, types: 1},
		{name: "packed", file: "b.json.gz", text: packed.String(), pods: 1},
		{name: "a group", file: "c.json", text: `{"podGroups": [` + group + `], "pods": [{"metadata": {"name": "p"}}]}`, pods: 3},
		{name: "types that are not there", file: "d.json", text: `{"instanceTypesFile": "none.json"}`, trouble: "none.json"},
		{name: "invalid types", file: "e.json", text: `{"instanceTypesFile": "c.json"}`, trouble: "decoding c.json"},
		{name: "no JSON", file: "f.json", text: `{`, trouble: "decoding the scenario"},
		{name: "not packed", file: "g.json.gz", text: `{}`, trouble: "unpacking"},
		{name: "a group of less than nothing", file: "h.json", text: `{"podGroups": [{"count": -1}]}`, trouble: "count -1"},
		{name: "a name twice", file: "i.json", text: `{"podGroups": [` + group + `], "pods": [{"metadata": {"name": "p-1"}}]}`, trouble: "two pods have the name default/p-1"},
		{name: "a name twice, once bound", file: "j.json", text: `{"pods": [{"metadata": {"name": "a"}}], "nodes": [{"name": "n", "pods": [{"metadata": {"name": "a"}}]}]}`, trouble: "on node n"},
	} {
		s, err := planvalidator.ReadScenario(write(c.file, c.text))
		if c.trouble != "" {
			if err == nil || !strings.Contains(err.Error(), c.trouble) {
				t.Errorf("%s: error %v, want one about %q", c.name, err, c.trouble)
			}
			continue
		}
		if err != nil || len(s.Pods) != c.pods || len(s.InstanceTypes) != c.types {
			t.Errorf("%s: scenario %+v (%v), want %d pods and %d types", c.name, s, err, c.pods, c.types)
		}
	}
	if _, err := planvalidator.ReadScenario(filepath.Join(dir, "none.json")); err == nil {
		t.Error("a file that is not there was read")
	}
	if _, err := planvalidator.ParseResult([]byte("[")); err == nil {
		t.Error("a plan that is no JSON was read")
	}
}
