package topology_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// entry returns an event on the bus: the attributes that IAM checks, and the envelope inside it.
func entry(source string, detailType event.Type, innerSource string, innerType event.Type) []byte {
	return fmt.Appendf(nil, `{"source":%q,"detail-type":%q,"detail":{"cluster":"prod","source":%q,"type":%q}}`, source, detailType, innerSource, innerType)
}

// The rules select a cluster's own facts and no commands.
func TestRulesSelectFactsOfOneCluster(t *testing.T) {
	ours, theirs := rule(t, "prod", "InboxRule"), rule(t, "prod-2", "InboxRule")
	for _, spec := range event.Specs {
		source := "joist/" + spec.Producers[0]
		raw := entry(source, spec.Type, source, spec.Type)
		want := spec.IsFact() && slices.Contains(spec.Consumers, "lifecycle")
		if got := matches(t, ours, raw); got != want {
			t.Errorf("inbox rule selects %s: %t, want %t", spec.Type, got, want)
		}
		if matches(t, theirs, raw) {
			t.Errorf("inbox rule of prod-2 selects %s of prod", spec.Type)
		}
		if got := matches(t, rule(t, "prod", "AuditRule"), raw); got != spec.IsFact() {
			t.Errorf("audit rule selects %s: %t, want %t", spec.Type, got, spec.IsFact())
		}
	}
}

// IAM checks the entry's source and detail-type, and the consumer reads those inside the detail. No rule selects an
// entry in which they differ, or whose source does not produce its type.
func TestRulesCompareEntryWithDetail(t *testing.T) {
	for _, id := range []string{"InboxRule", "AuditRule"} {
		selects := rule(t, "prod", id)
		for _, outer := range event.Specs {
			for _, inner := range event.Specs {
				for _, from := range outer.Producers {
					for _, of := range inner.Producers {
						genuine := outer.Type == inner.Type && from == of
						if !genuine && matches(t, selects, entry("joist/"+from, outer.Type, "joist/"+of, inner.Type)) {
							t.Errorf("rule %s selects an entry %s from %s with the detail %s from %s", id, outer.Type, from, inner.Type, of)
						}
					}
				}
			}
		}
		for name, raw := range map[string]string{
			"two types":      `{"source":"joist/planner","detail-type":"plan.made.v1","detail":{"cluster":"prod","source":"joist/planner","type":{"type":"plan.made.v1"}}}`,
			"no type":        `{"source":"joist/planner","detail-type":"plan.made.v1","detail":{"cluster":"prod","source":"joist/planner"}}`,
			"no source":      `{"source":"joist/planner","detail-type":"plan.made.v1","detail":{"cluster":"prod","type":"plan.made.v1"}}`,
			"capitals":       `{"source":"joist/planner","detail-type":"plan.made.v1","detail":{"cluster":"prod","source":"joist/planner","TYPE":"plan.made.v1"}}`,
			"unknown source": `{"source":"planner","detail-type":"plan.made.v1","detail":{"cluster":"prod","source":"joist/planner","type":"plan.made.v1"}}`,
		} {
			if matches(t, selects, []byte(raw)) {
				t.Errorf("rule %s selects an entry with %s", id, name)
			}
		}
	}
}

// EventBridge rejects a pattern of more than 2,048 characters, and the cluster's name is part of it.
func TestPatternsFit(t *testing.T) {
	p := of(t, topology.Cluster{Name: strings.Repeat("c", 100), Prefix: "c", InterruptionQueue: "q"})
	for _, r := range p.Rules {
		if len(r.Pattern) > 2048 {
			t.Errorf("the pattern of %s has %d characters", r.ID, len(r.Pattern))
		}
	}
}

// Every rule of the cluster's own bus lists the types that its pattern selects.
func TestRulesListTheirTypes(t *testing.T) {
	for _, r := range of(t, topology.Cluster{Name: "prod"}).Rules {
		if own := r.Bus != topology.DefaultBus; own != (len(r.Types) > 0) {
			t.Errorf("%s on %s lists %v", r.ID, r.Bus, r.Types)
		}
		for _, one := range r.Types {
			spec, err := one.Spec()
			if err != nil {
				t.Fatal(err)
			}
			source := "joist/" + spec.Producers[0]
			if !matches(t, r, entry(source, one, source, one)) {
				t.Errorf("%s lists %s and does not select it", r.ID, one)
			}
		}
	}
}
