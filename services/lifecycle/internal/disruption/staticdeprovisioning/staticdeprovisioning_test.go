package staticdeprovisioning_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption/staticdeprovisioning"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

var noon = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

// member returns a claim with an empty node.
func member(name string, edits ...func(*staticdeprovisioning.Member)) staticdeprovisioning.Member {
	m := staticdeprovisioning.Member{Claim: &karpenter.NodeClaim{}, Node: &corev1.Node{}}
	m.Claim.Name, m.Claim.Annotations = name, map[string]string{}
	m.Claim.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
	m.Claim.Status.ProviderID = "aws:///eu-west-1a/i-" + name
	for _, edit := range edits {
		edit(&m)
	}
	return m
}

func pods(n int, edits ...func(*corev1.Pod)) func(*staticdeprovisioning.Member) {
	return func(m *staticdeprovisioning.Member) {
		for range n {
			pod := &corev1.Pod{}
			for _, edit := range edits {
				edit(pod)
			}
			m.Pods = append(m.Pods, pod)
		}
	}
}

func tierUnlaunched(m *staticdeprovisioning.Member) { m.Claim.Status.ProviderID, m.Node = "", nil }
func deleted(m *staticdeprovisioning.Member)        { m.Claim.DeletionTimestamp = &metav1.Time{Time: noon} }
func old(m *staticdeprovisioning.Member) {
	m.Claim.Spec.ExpireAfter = karpenter.DurationOf(61 * time.Minute)
}
func kept(m *staticdeprovisioning.Member) {
	m.Node.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}
}

func drifted(m *staticdeprovisioning.Member) {
	m.Claim.Status.Conditions = m.Claim.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeDrifted, Status: metav1.ConditionTrue}, noon)
}

func acting(replacement string) func(*staticdeprovisioning.Member) {
	return func(m *staticdeprovisioning.Member) {
		m.Claim.Annotations[planning.ProposalAnnotation] = fmt.Sprintf(`{"id":"p","confirmed":"2026-11-22T11:59:00Z","replacements":[%q]}`, replacement)
	}
}

func protects(p *corev1.Pod) {
	p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}
}
func daemon(p *corev1.Pod) {
	owns := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Controller: &owns}}
}
func ended(p *corev1.Pod)        { p.Status.Phase = corev1.PodSucceeded }
func leaving(p *corev1.Pod)      { p.DeletionTimestamp = &metav1.Time{Time: noon} }
func highPriority(p *corev1.Pod) { p.Spec.Priority = new(int32(1 << 27)) }

func TestSelectionOrder(t *testing.T) {
	for _, tt := range []struct {
		name     string
		replicas int64
		members  []staticdeprovisioning.Member
		want     string
	}{
		{"as many nodes as replicas", 2, []staticdeprovisioning.Member{member("a"), member("b")}, ""},
		{"fewer", 3, []staticdeprovisioning.Member{member("a"), member("b")}, ""},
		{"claims without an instance are first", 1, []staticdeprovisioning.Member{member("a"), member("b", tierUnlaunched)}, "b"},
		{"empty nodes are next", 1, []staticdeprovisioning.Member{member("a", pods(1)), member("b", pods(3, daemon), pods(1, ended), pods(1, leaving))}, "b"},
		{"lowest disruption cost", 1, []staticdeprovisioning.Member{member("a", pods(3)), member("b", pods(2)), member("c", pods(1, highPriority))}, "b a"},
		{"shortest remaining lifetime", 1, []staticdeprovisioning.Member{member("a", pods(2)), member("b", pods(3), old)}, "b"},
		{"nodes with protected pods are last", 1, []staticdeprovisioning.Member{member("a", pods(1, protects)), member("b", pods(9))}, "b"},
		{"a protected DaemonSet pod counts", 1, []staticdeprovisioning.Member{member("a", pods(1, daemon, protects)), member("b", pods(9))}, "b"},
		{"the annotation on the node counts", 1, []staticdeprovisioning.Member{member("a", kept), member("b", pods(9))}, "b"},
		{"protected nodes are removed if necessary", 0, []staticdeprovisioning.Member{member("a", pods(1, protects)), member("b", pods(9))}, "b a"},
		{"of equal nodes, drifted ones are first", 1, []staticdeprovisioning.Member{member("a"), member("b", drifted)}, "b"},
		{"nodes that are being deleted count", 1, []staticdeprovisioning.Member{member("a"), member("b", deleted)}, ""},
		{"nodes that are being replaced count", 1, []staticdeprovisioning.Member{member("a", acting("b")), member("b", tierUnlaunched)}, ""},
		{"a replacement is not removed", 1, []staticdeprovisioning.Member{member("a", acting("b")), member("b", tierUnlaunched), member("c", pods(1))}, "c"},
		{"a replacement is not removed for zero replicas", 0, []staticdeprovisioning.Member{member("a", acting("b")), member("b", tierUnlaunched)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := next(tt.replicas, tt.members); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func next(replicas int64, members []staticdeprovisioning.Member) string {
	pool := &karpenter.NodePool{}
	pool.Spec.Replicas = &replicas
	var names []string
	for _, m := range staticdeprovisioning.SelectSurplus(staticdeprovisioning.View{Pool: pool, Members: members, Now: noon}) {
		names = append(names, m.Claim.Name)
	}
	return strings.Join(names, " ")
}

func TestOtherPoolsHaveNoSurplus(t *testing.T) {
	pool := &karpenter.NodePool{}
	if got := staticdeprovisioning.SelectSurplus(staticdeprovisioning.View{Pool: pool, Members: []staticdeprovisioning.Member{member("a")}, Now: noon}); got != nil {
		t.Errorf("selected %v of a pool that is not static", got)
	}
	pool.Spec.Replicas, pool.DeletionTimestamp = new(int64(0)), &metav1.Time{Time: noon}
	if got := staticdeprovisioning.SelectSurplus(staticdeprovisioning.View{Pool: pool, Members: []staticdeprovisioning.Member{member("a")}, Now: noon}); got != nil {
		t.Errorf("selected %v of a pool that is being deleted", got)
	}
}

// At least as many nodes remain as there are replicas, and exactly as many if none is being
// replaced.
func TestEnoughNodesRemain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var members []staticdeprovisioning.Member
		staying, replaced := 0, false
		edits := []func(*staticdeprovisioning.Member){tierUnlaunched, deleted, kept, drifted, old, pods(2), acting("m-0"), func(*staticdeprovisioning.Member) {}}
		for i := range rapid.IntRange(0, 8).Draw(t, "members") {
			which := rapid.IntRange(0, len(edits)-1).Draw(t, "kind")
			members = append(members, member(fmt.Sprintf("m-%d", i), edits[which]))
			if which != 1 && which != 6 {
				staying++
			}
			replaced = replaced || which == 6
		}
		replicas := rapid.IntRange(0, 8).Draw(t, "replicas")
		left := staying - len(strings.Fields(next(int64(replicas), members)))
		if left < min(staying, replicas) || !replaced && left > replicas {
			t.Fatalf("%d of %d nodes remain, want %d", left, staying, replicas)
		}
	})
}
