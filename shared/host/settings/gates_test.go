package settings

import (
	"maps"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The page of settings lists every feature gate and the settings of Karpenter 1.15, each with its default.
func TestSettingsPage(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Read(func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, gates := range []map[string]*bool{s.coreGates(), s.awsGates()} {
		for name, on := range maps.All(gates) {
			want[name] = strconv.FormatBool(*on)
		}
	}
	for _, v := range Variables {
		switch v.Name {
		case LegacyRepair, IgnoreDRA, Scheduler, GroupRefresh:
			want[v.Name] = v.Default
		}
	}
	got := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ?(\\w*) \\|").FindAllStringSubmatch(string(text), -1) {
		got[row[1]] = row[2]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the settings (-) and the page (+):\n%s", diff)
	}
}
