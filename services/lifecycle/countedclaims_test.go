package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// limitPool limits the CPUs of the NodePool default.
func (s *testCluster) limitPool(cpus string) {
	s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.(*karpenter.NodePool).Spec.Limits = karpenter.Limits{"cpu": resource.MustParse(cpus)}
	})
}

// admitUndelivered handles the plan of a new batch, of one intent, while the cache gets no watch events.
func (s *testCluster) admitUndelivered(id string, claims int) {
	s.t.Helper()
	held := s.startBatch()
	if err := s.svc.Handle(s.t.Context(), s.planMessage(held, s.planIntent(held, id, claims))); err != nil {
		s.t.Fatal(err)
	}
}

// removeClaim removes a claim and its finalizer.
func (s *testCluster) removeClaim(name string) {
	s.t.Helper()
	key := cluster.Key{Name: name}
	s.ChangeObject(cluster.NodeClaims, key, func(o cluster.Object) { o.SetFinalizers(nil) })
	if err := s.Delete(s.t.Context(), cluster.NodeClaims, key, ""); err != nil {
		s.t.Fatal(err)
	}
}

// An admission after the first one lists no NodeClaims, and a cache that lags exceeds no limit. The first plan has one claim of 2 CPUs.
func TestAdmissionCountsWithLaggingCache(t *testing.T) {
	// asOther lets another replica act, which has the same cache.
	asOther := func(s *testCluster, act func()) {
		mine := s.svc
		s.restartService()
		act()
		s.svc = mine
	}
	for _, test := range []struct {
		name, limit string
		// meanwhile happens between the first plan and the last one.
		meanwhile func(s *testCluster)
		lists     int
		admitted  bool
	}{
		{"the cache does not have the claim", "3", func(*testCluster) {}, 0, false},
		{"the limit covers both claims", "4", func(*testCluster) {}, 0, true},
		{"the cache has the claim", "3", func(s *testCluster) { s.cache.DeliverAll() }, 0, false},
		{"the claim is removed before the cache had it", "3", func(s *testCluster) { s.removeClaim("one-0") }, 0, true},
		{"the cache does not show the removal", "3", func(s *testCluster) { s.cache.DeliverAll(); s.removeClaim("one-0") }, 0, false},
		{"the cache shows the removal", "3", func(s *testCluster) { s.removeClaim("one-0"); s.cache.DeliverAll() }, 0, true},
		{"three plans without watch events", "5", func(s *testCluster) { s.admitUndelivered("second", 1) }, 0, false},
		{"a claim is created again under its name", "3", func(s *testCluster) {
			s.cache.DeliverAll()
			again := s.getClaim("one-0").DeepCopy()
			s.removeClaim("one-0")
			s.cache.DeliverAll()
			again.ResourceVersion, again.UID = "", ""
			s.createClaim(again)
			s.cache.DeliverAll()
		}, 0, false},
		{"the cache shows the removal of an earlier claim of the name, and not its creation", "3", func(s *testCluster) {
			s.cache.DeliverAll()
			removed := s.now
			s.removeClaim("one-0")
			s.now = removed.Add(time.Second)
			s.admitUndelivered("one", 1)
			s.cache.Advance(removed)
		}, 0, false},
		{"this replica completed a plan that another one had admitted", "7", func(s *testCluster) {
			asOther(s, func() { s.admitUndelivered("other", 1) })
			held := s.startBatch()
			made := s.planMessage(held, s.planIntent(held, "third", 1))
			asOther(s, func() {
				s.crashAtWrite(1, false) // After the swap to applying.
				_ = s.svc.Handle(t.Context(), made)
			})
			if err := s.svc.Handle(t.Context(), made); err != nil || s.getClaim("third-0") == nil {
				t.Fatal(err)
			}
		}, 1, false},
		{"the API server rejected another claim of an intent", "5", func(s *testCluster) {
			held := s.startBatch()
			rejected := s.planIntent(held, "rejected", 2)
			rejected.Claims[1].Object.Labels = map[string]string{karpenter.NodePoolLabelKey: "default", "example.com/team": "no label, --v=9"}
			rejected.Claims[1].Ceiling = corev1.ResourceList{"cpu": resource.MustParse("1")}
			if err := s.svc.Handle(s.t.Context(), s.planMessage(held, rejected)); err != nil || s.getClaim("rejected-0") == nil {
				s.t.Fatal(err)
			}
		}, 0, false},
		{"a new leader", "3", func(s *testCluster) {
			s.startService(s.svc.Client)
		}, 1, false},
		{"a new leader, whose cache has none of the claims", "5", func(s *testCluster) {
			s.startService(s.svc.Client)
			s.admitUndelivered("second", 1)
		}, 0, false},
		{"another replica led meanwhile", "3", func(s *testCluster) {
			for _, holder := range []string{"pod-2", "pod-1"} {
				s.setLeader(holder)
				s.now = s.now.Add(10 * time.Second)
				if err := s.svc.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}, 1, false},
		{"another replica completed a plan", "5", func(s *testCluster) {
			asOther(s, func() { s.admitUndelivered("other", 1) })
		}, 1, false},
		{"a batch was given up", "3", func(s *testCluster) {
			held := s.startBatch()
			if _, err := held.Swap(t.Context(), s.Server, outbox.Outbox{Epoch: 1, Seq: held.Seq + 1, State: outbox.Done}); err != nil {
				t.Fatal(err)
			}
		}, 1, false},
		{"the outbox was deleted, and another replica completed a plan of the new one", "5", func(s *testCluster) {
			if err := s.Delete(t.Context(), cluster.ConfigMaps, cluster.Key{Namespace: namespace, Name: outbox.Name}, ""); err != nil {
				t.Fatal(err)
			}
			asOther(s, func() { s.admitUndelivered("other", 1) })
		}, 1, false},
		{"the cache does not have 101 claims", "204", func(s *testCluster) { s.admitUndelivered("many", 100) }, 1, true},
		{"the cache does not have 100 claims", "202", func(s *testCluster) { s.admitUndelivered("many", 99) }, 0, true},
		{"the limit is that of 100 claims", "201", func(s *testCluster) { s.admitUndelivered("many", 99) }, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newTestCluster(t)
			s.limitPool(test.limit)
			s.reconcile()
			client := &countingClient{Client: s.ClientFor("lifecycle")}
			s.startService(client)
			s.admitUndelivered("one", 1)
			if client.lists != 1 {
				t.Fatalf("the first admission listed the NodeClaims %d times, want once", client.lists)
			}
			test.meanwhile(s)
			client.lists = 0
			s.admitUndelivered("two", 1)
			if got := s.getClaim("two-0") != nil; got != test.admitted || client.lists != test.lists {
				t.Errorf("the plan was admitted: %t, want %t; the NodeClaims were listed %d times, want %d", got, test.admitted, client.lists, test.lists)
			}
		})
	}
}

// A plan is not admitted while claims that count cannot be read, neither by a new leader, which lists all, nor by one whose
// cache lacks a claim.
func TestAdmissionFailsWithUnreadableClaims(t *testing.T) {
	for _, verb := range []memcluster.Verb{memcluster.VerbList, memcluster.VerbGet} {
		t.Run(string(verb), func(t *testing.T) {
			s := newTestCluster(t)
			s.limitPool("3")
			s.reconcile()
			s.admitUndelivered("one", 1)
			if verb == memcluster.VerbList {
				s.restartService()
			}
			held := s.startBatch()
			made := s.planMessage(held, s.planIntent(held, "two", 1))
			s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: verb, Kind: cluster.NodeClaims, As: fault.Unknown})
			if err := s.svc.Handle(t.Context(), made); !fault.Is(err, fault.Unknown) || s.readOutbox().State != outbox.Sent {
				t.Errorf("the outbox is %s after the error %v", s.readOutbox().State, err)
			}
			s.ClearFaults()
			if err := s.svc.Handle(t.Context(), made); err != nil || s.readOutbox().State != outbox.Done || s.getClaim("two-0") != nil {
				t.Errorf("the outbox is %s after the next delivery: %v", s.readOutbox().State, err)
			}
		})
	}
}

// A replica completes a plan that another one admitted, together with a claim that was created after the first one's list.
// The claim counts in the next admission.
func TestAdmissionCountsClaimOfAbandonedPlan(t *testing.T) {
	s := newTestCluster(t)
	s.limitPool("5")
	held := s.startBatch()
	late := s.planIntent(held, "late", 1)
	s.crashAtWrite(1, false) // After the swap to applying.
	_ = s.svc.Handle(t.Context(), s.planMessage(held, late))
	held = s.startBatch()
	made := s.planMessage(held, s.planIntent(held, "two", 1))
	s.startService(&interleavedList{s.ClientFor("lifecycle"), func() {
		mine := s.svc
		s.createClaim(late.Claims[0].Object.DeepCopy())
		s.crashAtWrite(1, false)
		_ = s.svc.Handle(t.Context(), made)
		s.svc = mine
	}})
	if err := s.svc.Handle(t.Context(), made); !fault.Is(err, fault.Conflict) {
		t.Fatal(err)
	}
	if err := s.svc.Handle(t.Context(), made); err != nil || len(s.readOutbox().Claims) != 2 {
		t.Fatalf("the outbox lists %v: %v", s.readOutbox().Claims, err)
	}
	s.admitUndelivered("three", 1)
	if s.getClaim("three-0") != nil {
		t.Error("three claims of 2 CPUs were admitted at a limit of 5")
	}
}

// The claim of a plan that is removed, while the cache shows it as being removed, counts as a new one.
func TestAdmissionReadsClaimsOfItsPlan(t *testing.T) {
	s := newTestCluster(t)
	s.admitUndelivered("one", 1)
	s.cache.DeliverAll()
	s.admitUndelivered("two", 1)
	s.limitPool("3")
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "one-0"}, ""); err != nil {
		t.Fatal(err)
	}
	s.cache.DeliverAll()
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) { o.SetFinalizers(nil) })
	s.admitUndelivered("one", 1)
	if s.getClaim("one-0") != nil {
		t.Error("two claims of 2 CPUs exist at a limit of 3 CPUs")
	}
}

// Claims that the cache has count once if a plan has them again.
func TestAdmissionCountsClaimsOfItsPlanOnce(t *testing.T) {
	s := newTestCluster(t)
	s.limitPool("8")
	s.admitUndelivered("one", 3)
	s.cache.DeliverAll()
	held := s.startBatch()
	s.handleMessage(s.planMessage(held, reversed(s.planIntent(held, "one", 3)), s.planIntent(held, "two", 1)), "")
	if s.getClaim("two-0") == nil {
		t.Error("four claims of 2 CPUs do not fit the limit of 8")
	}
}

func reversed(intent planning.PlannedIntent) planning.PlannedIntent {
	slices.Reverse(intent.Claims)
	return intent
}

// The replacements of a proposal count in the next admission, which lists no NodeClaims. So does a node whose removal was
// rolled back, although the cache still shows the removal.
func TestAdmissionCountsRolledBackClaim(t *testing.T) {
	s := newInitializedCluster(t, 1)
	s.limitPool("2")
	client := &countingClient{Client: s.ClientFor("lifecycle")}
	s.startService(client)
	s.startProposal(1, "old-0").deliver(event.Confirmed, "")
	s.handleMessage(s.newMessage(launchSettled("new", 1)), "")
	for tries := 0; s.getClaim("old-0").Annotations["joist.sh/proposal"] != ""; tries++ {
		if tries > 10 {
			t.Fatal("the removal was not rolled back")
		}
		s.advance(time.Second)
	}
	client.lists = 0
	s.admitUndelivered("two", 1)
	if s.getClaim("two-0") != nil || client.lists != 0 {
		t.Errorf("admitted %v at a limit of one node; the NodeClaims were listed %d times", s.boundInstances(), client.lists)
	}
}

// The launch of a NodeClaim that a user created counts, although the cache shows the claim as the user wrote it.
func TestAdmissionCountsLaunchOfUnplannedClaim(t *testing.T) {
	batch := planningtest.NewBatch()
	s, configure := withCatalogue(t, batch)
	s.limitPool("7") // A claim may get 4 CPUs.
	client := &countingClient{Client: s.ClientFor("lifecycle")}
	s.startService(client, configure)
	for i, launched := range []int{1, 0, 2} { // The third plan has the second and the third claim.
		name := fmt.Sprint("mine-", i)
		s.createClaim(personalClaim(name))
		switch i {
		case 0:
			s.reconcile()
		case 2:
			s.limitPool("12")
		}
		client.lists = 0
		if err := s.svc.Handle(t.Context(), s.planUnplanned(batch.Snapshot)); err != nil {
			t.Fatal(err)
		}
		if got := launchTexts(s.takeSent()); len(got) != launched || client.lists != max(1-i, 0) {
			t.Errorf("%s: sent %v, want %d launches; the NodeClaims were listed %d times", name, got, launched, client.lists)
		}
	}
}
