package nodepool_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// joined returns a claim whose node registered that long ago.
func joined(name string, ago time.Duration, changes ...func(*karpenter.NodeClaim, *corev1.Node)) nodepool.Member {
	at := metav1.NewTime(noon.Add(-ago))
	c, n := claim(nil), node(true, nil)
	c.Name, c.CreationTimestamp = name, at
	n.Name, n.CreationTimestamp = "node-"+name, at
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionTrue}, at.Time)
	for _, change := range changes {
		change(c, n)
	}
	return nodepool.Member{Claim: c, Node: n}
}

// driftedFor sets since when the claim has drifted.
func driftedFor(ago time.Duration) func(*karpenter.NodeClaim, *corev1.Node) {
	return func(c *karpenter.NodeClaim, _ *corev1.Node) {
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeDrifted, Status: metav1.ConditionTrue, Reason: "AMIDrift"}, noon.Add(-ago))
	}
}

func unready(_ *karpenter.NodeClaim, n *corev1.Node) {
	n.Status.Conditions[0].Status = corev1.ConditionFalse
}

func beingDrained(_ *karpenter.NodeClaim, n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: karpenter.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}}
}

func TestDriftRolledOutCondition(t *testing.T) {
	old := joined("old", 99*time.Hour, driftedFor(time.Hour))
	waves := map[string]string{policy.DriftCanary: "1", policy.DriftBake: "30m"}
	lonely := joined("coming", 11*time.Minute, func(c *karpenter.NodeClaim, _ *corev1.Node) { c.Status.Conditions = nil })
	lonely.Node = nil
	for _, tt := range []struct {
		name        string
		annotations map[string]string
		members     []nodepool.Member
		// want is the condition with its reason, or "". says is part of its message.
		want, says string
	}{
		{"without drift waves", nil, []nodepool.Member{old, joined("new", time.Minute, unready)}, "", ""},
		{"no drifted node", waves, []nodepool.Member{joined("new", time.Hour, unready)}, "True DriftRolledOut", ""},
		{"rollout begins", waves, []nodepool.Member{old}, "Unknown RollingOut", "each of which has to be ready for 30m0s"},
		{"a ready replacement", waves, []nodepool.Member{old, joined("new", time.Minute)}, "Unknown RollingOut", ""},
		{"a replacement that is not ready", waves, []nodepool.Member{old, joined("new", time.Minute, unready)}, "False Halted",
			"node node-new, created since then, is not ready. Drift resumes when the NodePool or its node class changes, when a ready node replaces the failed one, or when you set joist.sh/drift-resume"},
		{"a node from before the rollout is not ready", waves, []nodepool.Member{old, joined("new", 2*time.Hour, unready)}, "Unknown RollingOut", ""},
		{"the replacement that is not ready is being deleted", waves, []nodepool.Member{old, joined("new", time.Minute, unready, beingDrained)}, "Unknown RollingOut", ""},
		{"four replacements are not ready", waves, []nodepool.Member{
			old, joined("d", time.Minute, unready), joined("c", time.Minute, unready), joined("b", time.Minute, unready), joined("a", time.Minute, unready)},
			"False Halted", "each of the nodes node-a, node-b, node-c and 1 more, created since then, is not ready. "},
		{"a replacement is not initialized", waves, []nodepool.Member{old, lonely}, "False Halted", "node coming, created since then, is not initialized after 10m0s. "},
		{"the last drifted node is being deleted", waves, []nodepool.Member{joined("old", time.Hour, driftedFor(time.Minute), beingDrained), joined("new", time.Second, unready)}, "True DriftRolledOut", ""},
		{"after drift-resume", map[string]string{policy.DriftCanary: "1", policy.DriftResume: noon.Format(time.RFC3339)},
			[]nodepool.Member{old, joined("new", time.Minute, unready)}, "Unknown RollingOut", ""},
		{"invalid annotation", map[string]string{policy.DriftCanary: "one"}, []nodepool.Member{old, joined("new", time.Minute, unready)},
			"Unknown AnnotationsUnreadable", `joist.sh/drift-canary is "one"`},
		{"misspelt annotation", map[string]string{"joist.sh/drift-canaries": "1"}, []nodepool.Member{old}, "Unknown AnnotationsUnreadable", "unknown annotation joist.sh/drift-canaries"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := nodePool()
			p.Annotations = tt.annotations
			good := nodeClass(metav1.Condition{Status: metav1.ConditionTrue, Reason: "Ready"})
			view := nodepool.View{Pool: p, Class: good, Members: tt.members, Now: noon}
			status := nodepool.ComputeStatus(view)
			got, there := status.Conditions.Get(nodepool.DriftRolledOut)
			reported := ""
			if there {
				reported = string(got.Status) + " " + got.Reason
			}
			if reported != tt.want || !strings.Contains(got.Message, tt.says) {
				t.Errorf("got %q: %s; want %q: %s", reported, got.Message, tt.want, tt.says)
			}
			if halted := nodepool.DriftHalted(view); (halted != "") != strings.HasPrefix(tt.want, "False") {
				t.Errorf("halted: %q", halted)
			}
			if !status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
				t.Error("the pool is not Ready")
			}
			// A pool without the annotation has no such condition.
			p.Status, p.Annotations = status, nil
			if _, there := nodepool.ComputeStatus(view).Conditions.Get(nodepool.DriftRolledOut); there {
				t.Error("the condition remains after the annotations were removed")
			}
		})
	}
}

// The message states how long a node has to be ready only if a bake time is set.
func TestRolloutWithoutBake(t *testing.T) {
	p := nodePool()
	p.Annotations = map[string]string{policy.DriftCanary: "1"}
	view := nodepool.View{Pool: p, Members: []nodepool.Member{joined("old", 99*time.Hour, driftedFor(time.Hour))}, Now: noon}
	got, _ := nodepool.ComputeStatus(view).Conditions.Get(nodepool.DriftRolledOut)
	if want := "drifted nodes are replaced in waves"; got.Message != want {
		t.Errorf("got message %q, want %q", got.Message, want)
	}
}
