package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// replica is one of two candidates for the same Leases.
type replica struct {
	*lease.Election
	client cluster.Client
}

func newReplica(server *memcluster.Server, name string) replica {
	return replica{lease.NewElection(lease.Candidate{
		Own: cluster.Key{Namespace: "kube-system", Name: "joist-watcher"}, Holder: name, Karpenter: cluster.Key{Namespace: key.Namespace},
	}), server.ClientFor(name)}
}

// renew renews as the host does, until the context ends.
func (r replica) renew(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lease.RetryPeriod):
			_ = r.RenewLeases(ctx, r.client, time.Now()) // A failure that matters ends the act.
		}
	}
}

func (r replica) leads(t *testing.T) bool {
	leads, err := r.AcquireLeases(t.Context(), r.client, time.Now())
	if err != nil && !fault.Is(err, fault.Unknown) {
		t.Error(err)
	}
	return leads
}

// acting makes a first replica act for a minute while a second one tries to acquire the
// Leases twice a second. It returns the duration of the act, the time after which the
// second led (zero if it did not), and the act's error.
func acting(t *testing.T, renews bool, during func(*memcluster.Server)) (took, second time.Duration, err error) {
	synctest.Test(t, func(t *testing.T) {
		server := memcluster.New(memcluster.Options{Now: time.Now})
		a, b := newReplica(server, "a"), newReplica(server, "b")
		if !a.leads(t) {
			t.Fatal("the first replica did not acquire the Leases")
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if renews {
			go a.renew(ctx)
		}
		began, ended := time.Now(), make(chan struct{})
		go func() {
			defer close(ended)
			err = a.RunAsLeader(ctx, func(ctx context.Context) error {
				select {
				case <-time.After(time.Minute):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			took = time.Since(began)
		}()
		during(server)
		for range 2 * 59 {
			time.Sleep(500 * time.Millisecond)
			if second == 0 && b.leads(t) {
				second = time.Since(began)
			}
		}
		<-ended
	})
	return took, second, err
}

// A leader keeps its Leases during an act that takes four times the lease duration.
func TestLeasesAreRenewedDuringAnAct(t *testing.T) {
	took, second, err := acting(t, true, func(*memcluster.Server) {})
	if took != time.Minute || second != 0 || err != nil {
		t.Errorf("the act took %s (%v), and another replica led after %s", took, err, second)
	}
	if _, second, _ = acting(t, false, func(*memcluster.Server) {}); second == 0 {
		t.Error("no other replica led without renewals, so the test cannot fail")
	}
}

// A leader that cannot renew its Leases stops its act before another may begin; it
// tolerates a short outage of the API server.
func TestActsEndWhenTheLeaseIsLost(t *testing.T) {
	cutOff := func(times int) func(*memcluster.Server) {
		return func(s *memcluster.Server) {
			s.InjectFaults(memcluster.Fault{Actor: "a", Kind: cluster.Leases, As: fault.Unknown, Times: times})
		}
	}
	took, second, err := acting(t, true, cutOff(0))
	if !errors.Is(err, lease.ErrLeaseLost) || !fault.Is(err, fault.Retry) {
		t.Errorf("the act returned %v", err)
	}
	if took < lease.Renewal || took > lease.RenewDeadline+lease.RetryPeriod || second <= took {
		t.Errorf("the act took %s, and another replica led after %s", took, second)
	}
	if took, second, err := acting(t, true, cutOff(2)); took != time.Minute || second != 0 || err != nil {
		t.Errorf("with two failed renewals the act took %s (%v), and another replica led after %s", took, err, second)
	}
}

// A leader that lost its Lease to another stops its act at the next renewal.
func TestActsEndWhenAnotherHoldsTheLease(t *testing.T) {
	took, _, err := acting(t, true, func(s *memcluster.Server) {
		s.ChangeObject(cluster.Leases, key, func(o cluster.Object) { setHolder(o, "karpenter") })
	})
	if !errors.Is(err, lease.ErrLeaseLost) || took > lease.Renewal+lease.RetryPeriod {
		t.Errorf("the act took %s and returned %v", took, err)
	}
}

// A leader whose renewal conflicts stops its act, because another writer changed the Lease.
func TestActsEndWhenARenewalConflicts(t *testing.T) {
	took, _, err := acting(t, true, func(s *memcluster.Server) {
		s.InjectFaults(memcluster.Fault{Actor: "a", Verb: memcluster.VerbUpdate, As: fault.Conflict, Times: 1})
	})
	if !errors.Is(err, lease.ErrLeaseLost) || took > lease.Renewal+lease.RetryPeriod {
		t.Errorf("the act took %s and returned %v", took, err)
	}
}

// hangingClient is a client of an API server that accepts connections and does not answer reads.
type hangingClient struct{ cluster.Client }

func (hangingClient) Get(ctx context.Context, _ cluster.Kind, _ cluster.Key) (cluster.Object, error) {
	<-ctx.Done()
	return nil, fault.E("reading a Lease", fault.Unknown, ctx.Err())
}

// A renewal waits for an API server that does not answer only until the holder must stop. Until then a caller whose context
// ends still holds the Lease.
func TestHangingRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memcluster.New(memcluster.Options{Now: time.Now})
		a := by("a")
		if held, err := a.AcquireOrRenew(t.Context(), server, time.Now()); !held || err != nil {
			t.Fatalf("AcquireOrRenew = %t, %v", held, err)
		}
		acquired := time.Now()
		time.Sleep(lease.Renewal)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if held, err := a.AcquireOrRenew(short, hangingClient{server}, time.Now()); !held || err != nil {
			t.Errorf("AcquireOrRenew of a caller that ended = %t, %v, want true", held, err)
		}
		if held, err := a.AcquireOrRenew(t.Context(), hangingClient{server}, time.Now()); held || !fault.Is(err, fault.Unknown) {
			t.Errorf("AcquireOrRenew without an answer = %t, %v, want false", held, err)
		}
		if took := time.Since(acquired); took != lease.RenewDeadline {
			t.Errorf("the holder held the Lease for %s, want %s", took, lease.RenewDeadline)
		}
	})
}

func TestActsEndWhenTheAPIServerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memcluster.New(memcluster.Options{Now: time.Now})
		a := newReplica(server, "a")
		if !a.leads(t) {
			t.Fatal("the replica did not acquire the Leases")
		}
		a.client = hangingClient{server}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go a.renew(ctx)
		began := time.Now()
		err := a.RunAsLeader(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(began); !errors.Is(err, lease.ErrLeaseLost) || took != lease.RenewDeadline {
			t.Errorf("the act took %s and returned %v", took, err)
		}
	})
}

// While one caller waits for the API server, others wait for it, and return when their contexts end.
func TestCallersWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memcluster.New(memcluster.Options{Now: time.Now})
		a := newReplica(server, "a")
		first, cancelFirst := context.WithCancel(t.Context())
		go func() { _, _ = a.AcquireLeases(first, hangingClient{server}, time.Now()) }()
		synctest.Wait()
		for name, call := range map[string]func(context.Context) error{
			"AcquireLeases": func(ctx context.Context) error {
				leads, err := a.AcquireLeases(ctx, a.client, time.Now())
				if leads {
					t.Error("AcquireLeases = true without a turn")
				}
				return err
			},
			"RenewLeases":  func(ctx context.Context) error { return a.RenewLeases(ctx, a.client, time.Now()) },
			"ReleaseLease": func(ctx context.Context) error { return a.ReleaseLease(ctx, a.client) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s = %v, want the end of its context", name, err)
			}
			cancel()
		}
		if calls := server.Calls(); len(calls) > 0 {
			t.Errorf("calls without a turn: %v", calls)
		}
		cancelFirst()
		synctest.Wait()
		if !a.leads(t) {
			t.Error("the turn did not end")
		}
	})
}

// A replica that never led does not act, and renewing acquires no Lease.
func TestStandbysDoNotAct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memcluster.New(memcluster.Options{Now: time.Now})
		standby := newReplica(server, "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		standby.renew(ctx)
		err := standby.RunAsLeader(t.Context(), func(context.Context) error { t.Error("a standby replica acted"); return nil })
		if !errors.Is(err, lease.ErrLeaseLost) {
			t.Errorf("RunAsLeader of a standby replica returned %v", err)
		}
		if leases, _ := server.List(t.Context(), cluster.Leases, ""); len(leases) > 0 {
			t.Errorf("a standby replica acquired %d Leases", len(leases))
		}
	})
}

// A leader that makes no renewal, because it is paused or is shutting down, knows by its clock that it holds no Leases.
func TestHoldsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memcluster.New(memcluster.Options{Now: time.Now})
		leader, standby := newReplica(server, "a"), newReplica(server, "b")
		check := func(r replica, want bool, when string) {
			t.Helper()
			if got := r.HoldsLeases(time.Now()); got != want {
				t.Errorf("%s: HoldsLeases returns %t", when, got)
			}
		}
		check(leader, false, "before the election")
		if !leader.leads(t) || standby.leads(t) {
			t.Fatal("the first replica does not lead")
		}
		check(standby, false, "on a standby replica")
		time.Sleep(lease.RenewDeadline - time.Second)
		check(leader, true, "before the deadline of the renewal")
		time.Sleep(time.Second)
		check(leader, false, "at the deadline of the renewal")
		if !leader.leads(t) {
			t.Fatal("the leader cannot renew its Leases")
		}
		check(leader, true, "after a renewal")
		if err := leader.ReleaseLease(t.Context(), leader.client); err != nil {
			t.Fatal(err)
		}
		check(leader, false, "after the release")
	})
}

func setHolder(o cluster.Object, holder string) {
	o.(*coordinationv1.Lease).Spec.HolderIdentity = &holder
}
