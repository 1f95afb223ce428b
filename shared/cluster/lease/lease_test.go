package lease_test

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

var key = cluster.Key{Namespace: "kube-system", Name: lease.KarpenterName}

// world is a cluster with a manual clock.
type world struct {
	*memcluster.Server
	now time.Time
}

func newWorld() *world {
	w := &world{now: memcluster.Epoch}
	w.Server = memcluster.New(memcluster.Options{Now: func() time.Time { return w.now }})
	return w
}

// hold calls AcquireOrRenew with the holder's client.
func (w *world) hold(t *testing.T, l *lease.Lease) bool {
	t.Helper()
	held, err := l.AcquireOrRenew(t.Context(), w.ClientFor(l.Holder), w.now)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func (w *world) stored(t *testing.T) coordinationv1.LeaseSpec {
	t.Helper()
	object, err := cluster.Get[*coordinationv1.Lease](t.Context(), w, cluster.Leases, key)
	if err != nil {
		t.Fatal(err)
	}
	return object.Spec
}

func by(holder string) *lease.Lease { return &lease.Lease{Key: key, Holder: holder} }

func TestAcquireAndRenew(t *testing.T) {
	w := newWorld()
	a := by("a")
	if !w.hold(t, a) {
		t.Fatal("a missing Lease was not created")
	}
	first := w.stored(t)
	if *first.HolderIdentity != "a" || *first.LeaseDurationSeconds != 15 || *first.LeaseTransitions != 0 || !first.RenewTime.Time.Equal(w.now) {
		t.Errorf("stored Lease = %+v", first)
	}
	calls := w.Calls()["a get Lease"]
	w.now = w.now.Add(lease.Renewal - 1)
	if !w.hold(t, a) || w.Calls()["a get Lease"] != calls {
		t.Error("the API server was called before a renewal was due")
	}
	w.now = w.now.Add(1)
	if !w.hold(t, a) {
		t.Fatal("the Lease was not renewed")
	}
	again := w.stored(t)
	if !again.RenewTime.Time.Equal(w.now) || !again.AcquireTime.Time.Equal(memcluster.Epoch) || *again.LeaseTransitions != 0 {
		t.Errorf("Lease after the renewal = %+v", again)
	}
}

// A lease is taken over if it was not renewed for its duration since it was observed; the
// holder's clock does not matter.
func TestTakeOver(t *testing.T) {
	w := newWorld()
	a, b := by("a"), by("b")
	w.hold(t, a)
	w.now = w.now.Add(time.Hour)
	if w.hold(t, b) {
		t.Fatal("b acquired the Lease at its first observation")
	}
	w.now = w.now.Add(lease.Duration - 1)
	if w.hold(t, b) {
		t.Fatal("b acquired the Lease before its duration had passed")
	}
	w.now = w.now.Add(1)
	if !w.hold(t, b) {
		t.Fatal("b did not acquire an abandoned Lease")
	}
	if got := w.stored(t); *got.HolderIdentity != "b" || *got.LeaseTransitions != 1 || !got.AcquireTime.Time.Equal(w.now) {
		t.Errorf("stored Lease = %+v", got)
	}
	if w.hold(t, a) {
		t.Error("a still holds the Lease that b acquired")
	}
}

func TestRenewalsAreObserved(t *testing.T) {
	w := newWorld()
	a, b := by("a"), by("b")
	for range 10 {
		if !w.hold(t, a) {
			t.Fatal("a lost its Lease")
		}
		if w.hold(t, b) {
			t.Fatal("b acquired a Lease that a renews")
		}
		w.now = w.now.Add(lease.Renewal)
	}
}

// Karpenter uses the same Lease. While it renews, Joist does not act; when it releases
// the Lease, Joist acts at once; and the Lease's duration is Karpenter's.
func TestKarpenter(t *testing.T) {
	w := newWorld()
	holder, seconds, renewed := "karpenter-7d4b_1f2e", int32(40), metav1.NewMicroTime(w.now)
	w.SeedObjects(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	})
	joist := by(lease.KarpenterHolder)
	if w.hold(t, joist) {
		t.Fatal("Joist leads while Karpenter leads")
	}
	w.now = w.now.Add(lease.Duration)
	if w.hold(t, joist) {
		t.Fatal("Joist acquired the Lease before Karpenter's duration had passed")
	}
	w.ChangeObject(cluster.Leases, key, func(o cluster.Object) {
		none := ""
		o.(*coordinationv1.Lease).Spec.HolderIdentity = &none
	})
	if !w.hold(t, joist) {
		t.Error("Joist did not acquire a released Lease")
	}
}

// Both of Joist's writers hold Karpenter's Lease with the same holder name, so that
// neither excludes the other, and each alone keeps it.
func TestTwoWritersShareLease(t *testing.T) {
	w := newWorld()
	watcher, lifecycle, karpenter := by(lease.KarpenterHolder), by(lease.KarpenterHolder), by("karpenter")
	for round := range 12 {
		if !w.hold(t, watcher) {
			t.Fatalf("round %d: the watcher does not hold the Lease", round)
		}
		if round < 6 && !w.hold(t, lifecycle) {
			t.Fatalf("round %d: lifecycle does not hold the Lease", round)
		}
		if w.hold(t, karpenter) {
			t.Fatalf("round %d: Karpenter leads too", round)
		}
		w.now = w.now.Add(lease.Renewal)
	}
	if n := *w.stored(t).LeaseTransitions; n != 0 {
		t.Errorf("%d lease transitions between holders of one name", n)
	}
}

func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault memcluster.Fault
		later time.Duration
		held  bool
		kind  fault.Kind
	}{
		{"short outage of the API server", memcluster.Fault{As: fault.Retry}, lease.Renewal, true, ""},
		{"no outage, at the deadline", memcluster.Fault{Actor: "another client"}, lease.RenewDeadline, true, ""},
		{"long outage of the API server", memcluster.Fault{As: fault.Retry}, lease.Duration, false, fault.Retry},
		{"another writer was faster", memcluster.Fault{Verb: memcluster.VerbUpdate, As: fault.Conflict}, lease.Renewal, false, ""},
		{"a renewal without a response", memcluster.Fault{Verb: memcluster.VerbUpdate, Done: true}, lease.Renewal, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld()
			a := by("a")
			w.hold(t, a)
			w.InjectFaults(test.fault)
			w.now = w.now.Add(test.later)
			held, err := a.AcquireOrRenew(t.Context(), w.ClientFor("a"), w.now)
			if held != test.held || fault.KindOf(err) != test.kind {
				t.Errorf("AcquireOrRenew = %t, %v", held, err)
			}
			w.ClearFaults()
			if !w.hold(t, a) {
				t.Error("the Lease was not acquired again")
			}
		})
	}
}

// If two find no Lease, only one creates it.
func TestConcurrentCreate(t *testing.T) {
	w := newWorld()
	a, b := by("a"), by("b")
	w.InjectFaults(memcluster.Fault{Actor: "b", Verb: memcluster.VerbGet, As: fault.Missing, Times: 1})
	if !w.hold(t, a) || w.hold(t, b) {
		t.Error("want a to hold the Lease, and b not")
	}
}

func TestAcquireAll(t *testing.T) {
	w := newWorld()
	other := cluster.Key{Namespace: "kube-system", Name: "joist-watcher"}
	w.hold(t, by("karpenter"))
	mine := &lease.Lease{Key: other, Holder: "pod-1"}
	if held, err := lease.AcquireAll(t.Context(), w.ClientFor("pod-1"), w.now, mine, by(lease.KarpenterHolder)); held || err != nil {
		t.Errorf("AcquireAll = %t, %v while Karpenter holds its Lease", held, err)
	}
	if held, err := lease.AcquireAll(t.Context(), w.ClientFor("pod-1"), w.now, mine); !held || err != nil {
		t.Errorf("AcquireAll of one Lease = %t, %v", held, err)
	}
	// The first Lease is not available, so the second is not acquired.
	third := &lease.Lease{Key: cluster.Key{Namespace: "kube-system", Name: "third"}, Holder: "pod-1"}
	if held, _ := lease.AcquireAll(t.Context(), w.ClientFor("pod-1"), w.now, by("x"), third); held {
		t.Error("AcquireAll = true with an unavailable Lease")
	}
	if _, err := w.Get(t.Context(), cluster.Leases, third.Key); !fault.Is(err, fault.Missing) {
		t.Errorf("the Lease after an unavailable one was acquired: %v", err)
	}
}

// Release lets the next holder acquire the Lease at once, and never releases another
// holder's Lease.
func TestRelease(t *testing.T) {
	w := newWorld()
	a, b := by("a"), by("b")
	if err := a.Release(t.Context(), w.ClientFor("a")); err != nil {
		t.Fatalf("releasing a Lease that was never held: %v", err)
	}
	w.hold(t, a)
	if w.hold(t, b) {
		t.Fatal("a and b both hold the Lease")
	}
	if err := a.Release(t.Context(), w.ClientFor("a")); err != nil {
		t.Fatal(err)
	}
	if !w.hold(t, b) {
		t.Error("b did not acquire the released Lease at once")
	}
	w.now = w.now.Add(time.Second)
	if w.hold(t, a) {
		t.Error("a acquired the Lease that b holds")
	}
	// a was cut off until b led, and observes this last.
	w.now = w.now.Add(time.Minute)
	w.hold(t, a)
	w.now = w.now.Add(lease.Duration)
	if !w.hold(t, a) {
		t.Fatal("a did not acquire the abandoned Lease")
	}
	w.ChangeObject(cluster.Leases, key, func(o cluster.Object) { o.(*coordinationv1.Lease).Spec.HolderIdentity = new("c") })
	if err := a.Release(t.Context(), w.ClientFor("a")); err != nil || *w.stored(t).HolderIdentity != "c" {
		t.Errorf("the Lease of another holder was released: %v", err)
	}
}

// A replica that never held the Lease releases nothing, also if it shares its holder name with the replica that does.
func TestReleaseWithoutLease(t *testing.T) {
	w := newWorld()
	watcher, lifecycle := by(lease.KarpenterHolder), by(lease.KarpenterHolder)
	w.hold(t, watcher)
	if err := lifecycle.Release(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if holder := w.stored(t).HolderIdentity; holder == nil || *holder != lease.KarpenterHolder {
		t.Errorf("the Lease has the holder %v", holder)
	}
}

func TestReleaseFaults(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault memcluster.Fault
		kind  fault.Kind
	}{
		{"the Lease was deleted", memcluster.Fault{Verb: memcluster.VerbGet, As: fault.Missing}, ""},
		{"another replica wrote it first", memcluster.Fault{Verb: memcluster.VerbUpdate, As: fault.Conflict}, ""},
		{"outage of the API server", memcluster.Fault{As: fault.Retry}, fault.Retry},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld()
			a := by("a")
			w.hold(t, a)
			w.InjectFaults(test.fault)
			if err := a.Release(t.Context(), w.ClientFor("a")); fault.KindOf(err) != test.kind {
				t.Errorf("Release = %v, want %q", err, test.kind)
			}
		})
	}
}
