package pool_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/pool"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/policy"
)

// joined is a claim that became a node so long ago.
func joined(name string, ago time.Duration, changes ...func(*karpenter.NodeClaim, *corev1.Node)) pool.Member {
	at := metav1.NewTime(noon.Add(-ago))
	c, n := claim(nil), node(true, nil)
	c.Name, c.CreationTimestamp = name, at
	n.Name, n.CreationTimestamp = "node-"+name, at
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionTrue}, at.Time)
	for _, change := range changes {
		change(c, n)
	}
	return pool.Member{Claim: c, Node: n}
}

// driftedFor is since when the claim is not what is asked for.
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

func TestAsk16DriftRolledOut(t *testing.T) {
	old := joined("old", 99*time.Hour, driftedFor(time.Hour))
	waves := map[string]string{policy.DriftCanary: "1", policy.DriftBake: "30m"}
	lonely := joined("coming", 11*time.Minute, func(c *karpenter.NodeClaim, _ *corev1.Node) { c.Status.Conditions = nil })
	lonely.Node = nil
	for _, tt := range []struct {
		name        string
		annotations map[string]string
		members     []pool.Member
		// want is the condition, "" for none, with its reason; says is in its message.
		want, says string
	}{
		{"nobody asks for waves", nil, []pool.Member{old, joined("new", time.Minute, unready)}, "", ""},
		{"nothing has drifted", waves, []pool.Member{joined("new", time.Hour, unready)}, "True DriftRolledOut", ""},
		{"it has begun", waves, []pool.Member{old}, "Unknown RollingOut", "each of which has to be ready for 30m0s"},
		{"a good one has come", waves, []pool.Member{old, joined("new", time.Minute)}, "Unknown RollingOut", ""},
		{"a bad one has come", waves, []pool.Member{old, joined("new", time.Minute, unready)}, "False Halted",
			"node node-new, which came since, is not ready. Drift goes on when the NodePool or its node class changes, when the node is replaced by one that works, or when you set joist.sh/drift-resume"},
		{"a bad one was there before", waves, []pool.Member{old, joined("new", 2*time.Hour, unready)}, "Unknown RollingOut", ""},
		{"the bad one goes", waves, []pool.Member{old, joined("new", time.Minute, unready, beingDrained)}, "Unknown RollingOut", ""},
		{"four bad ones have come", waves, []pool.Member{
			old, joined("d", time.Minute, unready), joined("c", time.Minute, unready), joined("b", time.Minute, unready), joined("a", time.Minute, unready)},
			"False Halted", "each of the nodes node-a, node-b, node-c and 1 more, which came since, is not ready. "},
		{"one does not come", waves, []pool.Member{old, lonely}, "False Halted", "node coming, which came since, is not initialized after 10m0s. "},
		{"the last drifted one goes", waves, []pool.Member{joined("old", time.Hour, driftedFor(time.Minute), beingDrained), joined("new", time.Second, unready)}, "True DriftRolledOut", ""},
		{"somebody has seen to it", map[string]string{policy.DriftCanary: "1", policy.DriftResume: noon.Format(time.RFC3339)},
			[]pool.Member{old, joined("new", time.Minute, unready)}, "Unknown RollingOut", ""},
		{"what is asked cannot be read", map[string]string{policy.DriftCanary: "one"}, []pool.Member{old, joined("new", time.Minute, unready)},
			"Unknown AnnotationsUnreadable", `joist.sh/drift-canary is "one"`},
		{"a name is misspelt", map[string]string{"joist.sh/drift-canaries": "1"}, []pool.Member{old}, "Unknown AnnotationsUnreadable", "joist.sh/drift-canaries is not known"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := nodePool()
			p.Annotations = tt.annotations
			good := nodeClass(metav1.Condition{Status: metav1.ConditionTrue, Reason: "Ready"})
			view := pool.View{Pool: p, Class: good, Members: tt.members, Now: noon}
			status := pool.Status(view)
			got, there := status.Conditions.Get(pool.DriftRolledOut)
			said := ""
			if there {
				said = string(got.Status) + " " + got.Reason
			}
			if said != tt.want || !strings.Contains(got.Message, tt.says) {
				t.Errorf("%q: %s; want %q: %s", said, got.Message, tt.want, tt.says)
			}
			if halted := pool.DriftHalted(view); (halted != "") != strings.HasPrefix(tt.want, "False") {
				t.Errorf("halted: %q", halted)
			}
			if !status.Conditions.True(karpenter.ConditionTypeReady) {
				t.Error("the pool is not ready")
			}
			// Who does not ask any more is as though nobody ever had.
			p.Status, p.Annotations = status, nil
			if _, there := pool.Status(view).Conditions.Get(pool.DriftRolledOut); there {
				t.Error("the condition outlives the annotations")
			}
		})
	}
}
