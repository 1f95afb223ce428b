package rights_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/host/cardtest"
)

var (
	action = regexp.MustCompile("`([a-z0-9-]+:[A-Z][A-Za-z]+)`")
	folder = regexp.MustCompile("`([a-z]+)/(?:latest)?`")
)

// Each service's README lists exactly its role's AWS permissions: every action, and every
// folder of the bucket. The launcher's README has the reboots, too.
func TestCardsListTheRights(t *testing.T) {
	s := scope(t, cluster)
	s.RebootForRepair = true
	for _, service := range services() {
		path, section, err := cardtest.ReadSection("../..", service, "Rights")
		if err != nil {
			t.Fatal(err)
		}
		d, err := s.ServicePolicy(service)
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

// named returns the distinct names that match in a text, sorted.
func named(pattern *regexp.Regexp, text string) []string {
	var out []string
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		out = append(out, found[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}
