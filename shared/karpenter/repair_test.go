package karpenter

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Karpenter's policies; integration/suites/upstream tests that they equal Karpenter's.
func TestRepairPolicies(t *testing.T) {
	policies, err := ParseRepairPolicies(RepairPolicies)
	if err != nil || len(policies) != 7 || policies[2] != (RepairPolicy{"AcceleratedHardwareReady", "False", 10 * time.Minute}) {
		t.Fatal(policies, err)
	}
	var texts []string
	for _, p := range policies {
		texts = append(texts, p.String())
	}
	again, err := ParseRepairPolicies(" " + strings.Join(texts, " , ") + ",")
	if diff := cmp.Diff(policies, again); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if none, err := ParseRepairPolicies(""); len(none) != 0 || err != nil {
		t.Error(none, err)
	}
}

func TestParseRepairPoliciesRejects(t *testing.T) {
	for text, want := range map[string]string{
		"Ready":                         "does not have the form",
		"Ready=False":                   "does not have the form",
		"=False:30m":                    "does not have the form",
		"Ready:30m":                     "does not have the form",
		"Ready=Bad:30m":                 `has the unknown status "Bad"`,
		"Ready=False:soon":              "has no duration",
		"Ready=False:30":                "has no duration",
		"Ready=False:-1m":               "has no duration",
		"Ready=False:30m,Disk=Unknown:": "has no duration",
	} {
		if policies, err := ParseRepairPolicies(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", text, policies, err, want)
		}
	}
}
