package lease_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// lock is the Lease in client-go's leader election.
type lock struct {
	client cluster.Client
	last   *coordinationv1.Lease
}

func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	object, err := cluster.Get[*coordinationv1.Lease](ctx, l.client, cluster.Leases, key)
	if fault.Is(err, fault.Missing) {
		return nil, nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), key.Name)
	}
	if err != nil {
		return nil, nil, err
	}
	l.last = object
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&object.Spec)
	text, err := json.Marshal(record)
	return record, text, err
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	object.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
	stored, err := l.client.Create(ctx, object)
	if err == nil {
		l.last = stored.(*coordinationv1.Lease)
	}
	return err
}

func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	object := l.last.DeepCopy()
	object.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
	stored, err := l.client.Update(ctx, object)
	if err == nil {
		l.last = stored.(*coordinationv1.Lease)
	}
	return err
}

func (l *lock) RecordEvent(string) {}
func (l *lock) Identity() string   { return "karpenter" }
func (l *lock) Describe() string   { return key.String() }

// karpenter runs client-go's leader election as Karpenter does, with controller-runtime's
// durations, until the context ends.
func karpenter(ctx context.Context, t *testing.T, client cluster.Client, leads *atomic.Bool) {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &lock{client: client}, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { leads.Store(true) },
			OnStoppedLeading: func() { leads.Store(false) },
		},
	})
	if err != nil {
		t.Error(err)
		return
	}
	elector.Run(ctx)
}

// Joist and Karpenter's own leader election never lead at the same time: the second one
// waits, and takes over when the first has stopped, crashed or lost the API server.
func TestNeverLeadsWithKarpenter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memcluster.New(memcluster.Options{Now: time.Now})
		var theirs atomic.Bool
		start := func() (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { karpenter(ctx, t, server.ClientFor("karpenter"), &theirs); close(done) }()
			return func() { cancel(); <-done }
		}
		ours := &lease.Lease{Key: key, Holder: lease.KarpenterHolder}
		// pass advances the clock, runs Joist's election twice a second if runs is set, and
		// returns the leader at the end.
		pass := func(d time.Duration, runs bool) (us, them bool) {
			t.Helper()
			for end := time.Now().Add(d); time.Now().Before(end); {
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				if !runs {
					continue
				}
				us, _ = ours.AcquireOrRenew(t.Context(), server.ClientFor("joist"), time.Now())
				if us && theirs.Load() {
					t.Fatalf("Joist and Karpenter lead at %s", time.Now())
				}
			}
			return us, theirs.Load()
		}
		expect := func(what string, us, them, wantUs, wantThem bool) {
			t.Helper()
			if us != wantUs || them != wantThem {
				t.Errorf("%s: Joist leads: %v, Karpenter leads: %v", what, us, them)
			}
		}
		stop := start()
		us, them := pass(time.Minute, true)
		expect("Karpenter started first", us, them, false, true)
		stop()
		us, them = pass(lease.Duration+3*time.Second, true)
		expect("Karpenter was removed", us, them, true, false)
		stop = start()
		us, them = pass(5*time.Minute, true)
		expect("Karpenter was installed again", us, them, true, false)

		server.InjectFaults(memcluster.Fault{Actor: "joist", Verb: memcluster.VerbUpdate, Kind: cluster.Leases, As: fault.Unknown, Times: 8})
		us, them = pass(9*time.Second, true)
		expect("Joist lost the API server for 9 s", us, them, true, false)
		us, them = pass(time.Minute, false)
		expect("Joist was paused", us, them, false, true)
		us, them = pass(time.Minute, true)
		expect("Joist resumed", us, them, false, true)

		server.InjectFaults(memcluster.Fault{Actor: "karpenter", Verb: memcluster.VerbUpdate, Kind: cluster.Leases, As: fault.Unknown, Times: 100})
		us, them = pass(time.Minute, true)
		expect("Karpenter lost the API server", us, them, true, false)
		stop()
	})
}
