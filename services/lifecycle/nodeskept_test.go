package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// deliverKept returns a report of now.
func (s *testCluster) deliverKept(kept ...event.Kept) event.Envelope {
	snapshot := event.Ref{Kind: planning.SnapshotKind, Digest: event.DigestOf([]byte(s.now.String())), Size: 1}
	return s.newMessage(event.NodesKept{Kept: kept, Snapshot: snapshot, Decided: s.now})
}

// Events on a node and its claim report why it is not disrupted.
func TestKeptNodesHaveEvents(t *testing.T) {
	s := newInitializedCluster(t, 2)
	s.handleMessage(s.deliverKept(
		event.Kept{Rule: "pod-disruption-budget", Subject: "shop/web", Claims: []string{"old-0"}},
		event.Kept{Rule: "no-saving", Detail: "no cheaper node", Claims: []string{"old-1", "not-there"}},
		event.Kept{Rule: "of-a-later-version", Claims: []string{"old-1"}},
	), "")
	for reason, want := range map[string][]string{
		"DisruptionBlocked": {
			"Node old-0: Pdb prevents pod evictions (PodDisruptionBudget=[shop/web])",
			"NodeClaim old-0: Pdb prevents pod evictions (PodDisruptionBudget=[shop/web])",
		},
		"Unconsolidatable": {"Node old-1: Can't replace with a cheaper node", "NodeClaim old-1: Can't replace with a cheaper node"},
	} {
		if diff := cmp.Diff(want, s.eventsWithReason(reason)); diff != "" {
			t.Errorf("%s:\n%s", reason, diff)
		}
	}
}

// A NodePool whose budget allows nothing has Karpenter's Event, once a minute at most. A NodePool
// whose budget is partly used has none.
func TestExhaustedBudgetsHaveEvents(t *testing.T) {
	for _, c := range []struct {
		name, nodes, reason string
		want                []string
	}{
		{"closed", "0", "Underutilized", []string{"NodePool default: No allowed disruptions for disruption reason Underutilized due to blocking budget"}},
		{"closed by a percentage", "0%", "Drifted", []string{"NodePool default: No allowed disruptions for disruption reason Drifted due to blocking budget"}},
		{"used", "10%", "Underutilized", nil},
		{"unknown reason", "0", "Moon", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newInitializedCluster(t, 2)
			s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
				o.(*karpenter.NodePool).Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: c.nodes}}
			})
			for range 2 {
				s.handleMessage(s.deliverKept(event.Kept{Rule: "budget", Subject: c.reason, Claims: []string{"old-0", "old-1"}}), "")
				s.now = s.now.Add(59 * time.Second)
			}
			if diff := cmp.Diff(c.want, s.eventsWithReason("DisruptionBlocked")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A forged report causes only Events, and few of them.
func TestForgedReportsOnlyCauseEvents(t *testing.T) {
	s := newInitializedCluster(t, 3)
	state := func() (out []string) {
		for _, kind := range []cluster.Kind{cluster.NodeClaims, cluster.Nodes, cluster.NodePools} {
			objects, err := s.List(t.Context(), kind, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects {
				out = append(out, o.GetName()+" "+o.GetResourceVersion())
			}
		}
		return out
	}
	before, events := state(), len(s.Events())
	for i := range 100 {
		var forged []event.Kept
		for _, rule := range []string{"deleting", "no-pool", "balanced", "budget", "proposal-confirmed", "moon"} {
			forged = append(forged, event.Kept{Rule: rule, Subject: "Drifted", Detail: fmt.Sprint("forged ", i), Claims: []string{"old-0", "old-1", "old-2"}})
		}
		s.handleMessage(s.deliverKept(forged...), "")
		s.now = s.now.Add(time.Second)
	}
	if diff := cmp.Diff(before, state()); diff != "" {
		t.Error(diff)
	}
	// Two reasons, each on a Node and on its claim.
	if got := len(s.Events()) - events; got != 12 {
		t.Errorf("%d Events in 100 s, want 12", got)
	}
	if got := s.takeSent(); len(got) != 0 {
		t.Errorf("forged reports sent %v", typesAndSubjects(got))
	}
}

// A stable cluster that cannot be consolidated has no more Events than with Karpenter, and no other
// API calls, although each report repeats the same.
func TestStableClusterHasFewEvents(t *testing.T) {
	const nodes = 1000
	s := newTestCluster(t)
	var claims []string
	for i := range nodes {
		name := fmt.Sprintf("default-%04d", i)
		c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpenter.NodePoolLabelKey: "default"}}}
		c.Status.NodeName, c.Status.ProviderID = name, "aws:///eu-west-1a/i-"+name
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Spec.ProviderID = c.Status.ProviderID
		s.SeedObjects(c, node)
		claims = append(claims, name)
	}
	s.cache.DeliverAll()
	// calls counts the API calls except calls for Leases.
	calls := func() (n int) {
		for what, count := range s.Calls() {
			if !strings.HasSuffix(what, " Lease") && strings.HasPrefix(what, "lifecycle ") {
				n += count
			}
		}
		return n
	}
	for _, c := range []struct {
		rule  string
		every time.Duration
	}{{"no-saving", 15 * time.Minute}, {"do-not-disrupt", 5 * time.Minute}} {
		published, called := len(s.Events()), calls()
		for range 30 {
			report := s.deliverKept(event.Kept{Rule: c.rule, Claims: claims})
			if err := s.svc.Handle(t.Context(), report); err != nil {
				t.Fatal(err)
			}
			s.now = s.now.Add(2 * time.Minute)
		}
		if got, most := len(s.Events())-published, 2*nodes*int(time.Hour/c.every); got > most || got < most/2 {
			t.Errorf("%s: %d Events in an hour, want at most %d", c.rule, got, most)
		} else if called = calls() - called; called != got {
			t.Errorf("%s: %d calls for %d Events", c.rule, called, got)
		}
	}
}
