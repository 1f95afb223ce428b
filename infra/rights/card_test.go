package rights_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	action = regexp.MustCompile("`([a-z0-9-]+:[A-Z][A-Za-z]+)`")
	folder = regexp.MustCompile("`([a-z]+)/(?:latest)?`")
)

// What a service's card lists as rights in AWS is what its role has: each action, and
// each folder of the bucket.
func TestCardsListTheRights(t *testing.T) {
	s := scope(t, cluster)
	for _, service := range services() {
		path := filepath.Join("..", "..", "services", service, "README.md")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, section, found := strings.Cut(string(text), "\n## Rights\n")
		if !found {
			t.Errorf("%s has no Rights", path)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		d, err := s.Of(service)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(named(action, section), d.Actions()); diff != "" {
			t.Errorf("%s and the role of %s differ in actions (-card +role):\n%s", path, service, diff)
		}
		if diff := cmp.Diff(named(folder, section), named(regexp.MustCompile(`/prod/([a-z]+)/`), string(d.JSON()))); diff != "" {
			t.Errorf("%s and the role of %s differ in folders (-card +role):\n%s", path, service, diff)
		}
	}
}

// named are the names that a text has, sorted, each once.
func named(pattern *regexp.Regexp, text string) []string {
	var out []string
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		out = append(out, found[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}
