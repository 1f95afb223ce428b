package lease_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
)

// A writer holds the right Leases in each situation, and releases the right ones when it
// stops.
func TestElection(t *testing.T) {
	own := cluster.Key{Namespace: "joist", Name: "joist-watcher"}
	for _, c := range []struct {
		name       string
		candidate  lease.Candidate
		held, left map[string]string
	}{
		{"Karpenter in kube-system", lease.Candidate{Own: own, Holder: "pod-1", Karpenter: cluster.Key{Namespace: "kube-system"}},
			map[string]string{"joist/joist-watcher": "pod-1", "kube-system/karpenter-leader-election": "joist"},
			map[string]string{"kube-system/karpenter-leader-election": "joist"}},
		{"LEADER_ELECTION_NAME", lease.Candidate{Own: own, Holder: "pod-1", Karpenter: cluster.Key{Namespace: "karpenter", Name: "ours"}},
			map[string]string{"joist/joist-watcher": "pod-1", "karpenter/ours": "joist"},
			map[string]string{"karpenter/ours": "joist"}},
		{"DISABLE_LEADER_ELECTION", lease.Candidate{Own: own, SingleReplica: true, Holder: "pod-1", Karpenter: cluster.Key{Namespace: "kube-system"}},
			map[string]string{"kube-system/karpenter-leader-election": "joist"},
			map[string]string{"kube-system/karpenter-leader-election": "joist"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := elsewhere()
			election := lease.NewElection(c.candidate)
			if leads, err := election.AcquireLeases(t.Context(), w, w.now); !leads || err != nil {
				t.Fatalf("AcquireLeases = %t, %v, want true", leads, err)
			}
			if diff := cmp.Diff(c.held, holders(t, w)); diff != "" {
				t.Errorf("acquired Leases (-want +got):\n%s", diff)
			}
			if err := election.ReleaseLease(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.left, holders(t, w)); diff != "" {
				t.Errorf("remaining Leases (-want +got):\n%s", diff)
			}
		})
	}
}

// elsewhere returns a world with the namespaces of Joist and Karpenter.
func elsewhere() *world {
	w := newWorld()
	for _, name := range []string{"joist", "karpenter"} {
		w.SeedObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return w
}

// holders returns the holder of each Lease.
func holders(t *testing.T, w *world) map[string]string {
	t.Helper()
	out := map[string]string{}
	leases, err := cluster.List[*coordinationv1.Lease](t.Context(), w, cluster.Leases)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range leases {
		if l.Spec.HolderIdentity != nil {
			out[cluster.KeyOf(l).String()] = *l.Spec.HolderIdentity
		}
	}
	return out
}

// A single replica does not act either while Karpenter holds its Lease, and of two
// replicas only the one that holds both Leases leads.
func TestElectionWhileKarpenterLeads(t *testing.T) {
	for _, alone := range []bool{false, true} {
		w := elsewhere()
		w.hold(t, by("karpenter-1"))
		election := lease.NewElection(lease.Candidate{
			Own: cluster.Key{Namespace: "joist", Name: "joist-watcher"}, SingleReplica: alone, Holder: "pod-1", Karpenter: cluster.Key{Namespace: key.Namespace},
		})
		if leads, err := election.AcquireLeases(t.Context(), w, w.now); leads || err != nil {
			t.Errorf("alone %t: AcquireLeases = %t, %v while Karpenter leads", alone, leads, err)
		}
	}
	w := elsewhere()
	mine := lease.Candidate{Own: cluster.Key{Namespace: "joist", Name: "joist-watcher"}, Holder: "pod-1", Karpenter: cluster.Key{Namespace: key.Namespace}}
	other := mine
	other.Holder = "pod-2"
	first, second := lease.NewElection(mine), lease.NewElection(other)
	for _, e := range []*lease.Election{first, second} {
		leads, err := e.AcquireLeases(t.Context(), w, w.now)
		if leads != (e == first) || err != nil {
			t.Errorf("AcquireLeases of two replicas = %t, %v", leads, err)
		}
	}
}
