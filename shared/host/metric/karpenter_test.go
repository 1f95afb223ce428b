package metric

import (
	"os"
	"strings"
	"testing"
)

// Each Karpenter metric exists here, or has a similar metric, or is absent with a reason; and every metric with
// Karpenter's prefix exists in Karpenter.
func TestEachOfKarpentersMetricsIsAccountedFor(t *testing.T) {
	text, err := os.ReadFile("testdata/karpenter.txt")
	if err != nil {
		t.Fatal(err)
	}
	theirs := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		if name, kind, ok := strings.Cut(line, " "); ok && name != "#" {
			theirs[name] = kind
		}
	}
	if len(theirs) < 70 {
		t.Fatalf("the list has %d metrics", len(theirs))
	}
	ours := map[string]Metric{}
	for _, m := range Catalogue {
		ours[m.Name] = m
		if kind, theirs := theirs[m.Name]; strings.HasPrefix(m.Name, "karpenter_") && (!theirs || kind != string(m.Kind)) {
			t.Errorf("%s is a %s here and %q at Karpenter's", m.Name, m.Kind, kind)
		}
	}
	said := map[string]bool{}
	for _, o := range KarpenterMetrics {
		_, same := ours[o.Name]
		_, like := ours[o.Like]
		if said[o.Name] || same || theirs[o.Name] == "" || o.Like != "" && !like || !strings.HasSuffix(o.Why, ".") {
			t.Errorf("%+v: twice, or the same, or not Karpenter's, or like nothing, or without a reason", o)
		}
		said[o.Name] = true
	}
	for name := range theirs {
		if _, same := ours[name]; !same && !said[name] {
			t.Errorf("nothing is said of %s", name)
		}
	}
}
