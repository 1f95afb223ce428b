package repair_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// policy returns a policy that repairs GPU=False after a toleration.
func policy(reason string, after time.Duration, changes ...func(*repair.Policy)) repair.Policy {
	p := repair.Policy{Condition: "GPU", Status: "False", Reason: reason, Toleration: after, Action: repair.Replace}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func reboots(p *repair.Policy) { p.Action = repair.Reboot }
func within(grace time.Duration) func(*repair.Policy) {
	return func(p *repair.Policy) { p.GracePeriod = &grace }
}
func priority(n int) func(*repair.Policy) { return func(p *repair.Policy) { p.Priority = n } }
func of(condition corev1.NodeConditionType) func(*repair.Policy) {
	return func(p *repair.Policy) { p.Condition = condition }
}

// bad returns the condition GPU=False since a time before noon.
func bad(reason string, ago time.Duration) repair.UnhealthyCondition {
	return repair.UnhealthyCondition{Type: "GPU", Status: "False", Reason: reason, Since: noon.Add(-ago)}
}

func badOf(condition corev1.NodeConditionType, ago time.Duration) repair.UnhealthyCondition {
	c := bad("", ago)
	c.Type = condition
	return c
}

// The cases are those of Karpenter's "validating complete policy sets" and "Matching"
// (pkg/controllers/node/health/policy_internal_test.go).
func TestNewMatcherRejects(t *testing.T) {
	fallback := policy("", time.Minute)
	for name, c := range map[string]struct {
		policies []repair.Policy
		says     string
	}{
		"valid":                         {[]repair.Policy{policy("XID", 0, reboots), fallback}, ""},
		"each status":                   {[]repair.Policy{fallback, policy(".*", 0, func(p *repair.Policy) { p.Status = "True" }), policy(".*", 0, func(p *repair.Policy) { p.Status = "Unknown" })}, ""},
		"the limits of a priority":      {[]repair.Policy{policy("a", 0, priority(100)), policy("b", 0, priority(0)), fallback}, ""},
		"no policies":                   {nil, "node repair requires the cloud provider to define RepairPolicies, but it defines none"},
		"empty condition type":          {[]repair.Policy{policy("a", 0, of("")), fallback}, "node repair requires valid RepairPolicies, policy 0 (=False): the condition type is empty"},
		"unknown status":                {[]repair.Policy{fallback, policy("a", 0, func(p *repair.Policy) { p.Status = "Bad" })}, `policy 1 (GPU=Bad): unknown condition status "Bad"`},
		"invalid expression":            {[]repair.Policy{policy("[", 0, reboots), fallback}, "invalid reason expression: error parsing regexp"},
		"unsupported action":            {[]repair.Policy{policy("a", 0, func(p *repair.Policy) { p.Action = "Hide" }), fallback}, `unsupported action "Hide"`},
		"negative toleration":           {[]repair.Policy{policy("", -time.Second)}, "the toleration -1s is negative"},
		"negative grace period":         {[]repair.Policy{policy("", 0, within(-time.Second))}, "the termination grace period is negative"},
		"negative priority":             {[]repair.Policy{policy("", 0, priority(-1))}, "priority -1 is outside the range from 0 to 100"},
		"priority above 100":            {[]repair.Policy{policy("", 0, priority(101))}, "priority 101 is outside the range from 0 to 100"},
		"no fallback":                   {[]repair.Policy{policy("a", 0)}, "repair policy set must define one default fallback"},
		"two fallbacks":                 {[]repair.Policy{fallback, policy("", 0, of("Disk"))}, "repair policy set has multiple default fallbacks"},
		"a fallback that does not help": {[]repair.Policy{policy("", 0, reboots)}, `default fallback policy must use action "ReplaceNode"`},
	} {
		_, err := repair.NewMatcher(repair.PolicySet{Policies: c.policies})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func TestDecide(t *testing.T) {
	type want struct {
		action    repair.RepairAction
		condition corev1.NodeConditionType
		eligible  time.Duration // after noon
		grace     time.Duration // -1 for none
		score     float64
	}
	none := want{grace: -1}
	xid := policy("^XID", 10*time.Minute)
	fallback := policy("", 30*time.Minute)
	for _, c := range []struct {
		name      string
		policies  []repair.Policy
		unhealthy []repair.UnhealthyCondition
		notBefore time.Duration
		want      want
	}{
		{"healthy", []repair.Policy{xid, fallback}, nil, 0, none},
		{"within its toleration", []repair.Policy{xid, fallback}, []repair.UnhealthyCondition{bad("XID1", 10*time.Minute-1)}, -time.Hour, none},
		{"at the end of its toleration", []repair.Policy{xid, fallback}, []repair.UnhealthyCondition{bad("XID1", 10*time.Minute)}, -time.Hour, want{repair.Replace, "GPU", 0, -1, 0}},
		{"fallback for another reason", []repair.Policy{xid, fallback}, []repair.UnhealthyCondition{bad("Lost", 45*time.Minute)}, -time.Hour, want{repair.Replace, "GPU", -15 * time.Minute, -1, 0.5}},
		{"the fallback waits for a matching policy", []repair.Policy{policy("XID", 2*time.Hour), fallback}, []repair.UnhealthyCondition{bad("XID1", time.Hour)}, -24 * time.Hour, none},
		{"the fallback is of every condition of the set", []repair.Policy{policy("x", 0, of("Disk")), fallback}, []repair.UnhealthyCondition{badOf("Disk", time.Hour)}, -24 * time.Hour, want{repair.Replace, "Disk", -30 * time.Minute, -1, 1}},
		{"a condition without a policy", []repair.Policy{xid, fallback}, []repair.UnhealthyCondition{badOf("Net", time.Hour)}, -24 * time.Hour, none},
		{"since the last reboot", []repair.Policy{xid, fallback}, []repair.UnhealthyCondition{bad("XID1", time.Hour)}, -9 * time.Minute, none},
		{"long enough since the last reboot", []repair.Policy{xid, fallback}, []repair.UnhealthyCondition{bad("XID1", time.Hour)}, -10 * time.Minute, want{repair.Replace, "GPU", 0, -1, 0}},
		{"replacement beats reboot at any priority", []repair.Policy{policy("1", 0, reboots, priority(9)), policy("X", 0), fallback}, []repair.UnhealthyCondition{bad("X1", time.Hour)}, -24 * time.Hour, want{repair.Replace, "GPU", -time.Hour, -1, 3}},
		{"the higher priority", []repair.Policy{policy("X", 0, priority(5)), policy("X", 0, of("Disk"), priority(50)), fallback}, []repair.UnhealthyCondition{bad("X", time.Hour), {Type: "Disk", Status: "False", Reason: "X", Since: noon}}, -24 * time.Hour, want{repair.Replace, "Disk", 0, -1, 3}},
		{"the earlier end of a toleration", []repair.Policy{policy("", 0)}, []repair.UnhealthyCondition{bad("", time.Minute), bad("", 3*time.Minute)}, -24 * time.Hour, want{repair.Replace, "GPU", -3 * time.Minute, -1, 0.1}},
		{"the lower condition type", []repair.Policy{policy("", 0), policy(".*", 0, of("Disk"))}, []repair.UnhealthyCondition{bad("", 0), badOf("Disk", 0)}, -24 * time.Hour, want{repair.Replace, "Disk", 0, -1, 0}},
		{"the shortest grace period of all", []repair.Policy{policy("X", 0, within(time.Hour)), policy("1", 0, within(time.Minute), reboots), policy("", 0)}, []repair.UnhealthyCondition{bad("X1", 0)}, -24 * time.Hour, want{repair.Replace, "GPU", 0, time.Minute, 0}},
		{"a policy that waits does not limit the drain", []repair.Policy{policy("X", 0, within(time.Hour)), policy("1", time.Second, within(time.Minute)), policy("", 0)}, []repair.UnhealthyCondition{bad("X1", 0)}, -24 * time.Hour, want{repair.Replace, "GPU", 0, time.Hour, 0}},
		{"no drain", []repair.Policy{policy("X", 0, within(0)), policy("", 0, within(time.Hour))}, []repair.UnhealthyCondition{bad("X1", 0)}, -24 * time.Hour, want{repair.Replace, "GPU", 0, 0, 0}},
		{"the score is the highest of all policies", []repair.Policy{policy("X", 0, priority(7)), policy("X", 0, of("Disk"), priority(8)), policy("", 0)}, []repair.UnhealthyCondition{bad("X", 3*time.Hour), {Type: "Disk", Status: "False", Reason: "X", Since: noon}}, -24 * time.Hour, want{repair.Replace, "Disk", 0, -1, 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := repair.NewMatcher(repair.PolicySet{Policies: c.policies})
			if err != nil {
				t.Fatal(err)
			}
			d := m.Decide(c.unhealthy, noon, noon.Add(c.notBefore))
			got := want{action: d.Action, condition: d.Condition.Type, grace: -1, score: math.Round(d.Score*1000) / 1000}
			if d.Action != "" {
				got.eligible = d.EligibleAt.Sub(noon)
			}
			if d.GracePeriod != nil {
				got.grace = *d.GracePeriod
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// Next is when the first running toleration ends.
func TestDecideReturnsNextEnd(t *testing.T) {
	m, err := repair.NewMatcher(repair.PolicySet{Policies: []repair.Policy{policy("X", 10*time.Minute), policy("", 30*time.Minute)}})
	if err != nil {
		t.Fatal(err)
	}
	if d := m.Decide([]repair.UnhealthyCondition{bad("Y", 0), bad("X", 4*time.Minute), bad("X", time.Minute)}, noon, time.Time{}); !d.Next.Equal(noon.Add(6 * time.Minute)) {
		t.Errorf("got %s", d.Next)
	}
}

// Conditions without a policy are left out, and no condition is older than its node.
func TestFindConditions(t *testing.T) {
	m, err := repair.NewMatcher(repair.PolicySet{Policies: []repair.Policy{policy("", 0), policy("x", 0, of("Disk"))}})
	if err != nil {
		t.Fatal(err)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon)}}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: "GPU", Status: "False", Reason: "XID1", Message: "m", LastTransitionTime: metav1.NewTime(noon.Add(time.Hour))},
		{Type: "GPU", Status: "True"}, {Type: "Net", Status: "False"}, {Type: "Disk", Status: "False", LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))},
	}
	want := []repair.UnhealthyCondition{{Type: "GPU", Status: "False", Reason: "XID1", Since: noon.Add(time.Hour)}, {Type: "Disk", Status: "False", Since: noon}}
	if diff := cmp.Diff(want, m.FindConditions(n)); diff != "" {
		t.Error(diff)
	}
}

func TestLimitDrain(t *testing.T) {
	minute, hour := new(time.Minute), new(time.Hour)
	for name, c := range map[string]struct{ policy, claim, want *time.Duration }{
		"neither":                  {nil, nil, nil},
		"only the NodeClaim":       {nil, hour, nil},
		"only the policy":          {hour, nil, hour},
		"the policy is shorter":    {minute, hour, minute},
		"the NodeClaim is shorter": {hour, minute, minute},
	} {
		if diff := cmp.Diff(c.want, repair.NodeRepair{GracePeriod: c.policy}.LimitDrain(c.claim)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestExceeds(t *testing.T) {
	fifth := intstr.FromString("20%")
	for _, c := range []struct {
		limit            intstr.IntOrString
		unhealthy, nodes int
		want             bool
	}{
		{fifth, 1, 1, false}, {fifth, 1, 5, false}, {fifth, 2, 5, true}, {fifth, 2, 6, false}, {fifth, 3, 10, true},
		{intstr.FromInt32(2), 2, 100, false}, {intstr.FromInt32(2), 3, 100, true}, {intstr.FromString("many"), 0, 10, true},
	} {
		if got := repair.Exceeds(c.limit, c.unhealthy, c.nodes); got != c.want {
			t.Errorf("%d of %d at %s: %v", c.unhealthy, c.nodes, c.limit.String(), got)
		}
	}
}
