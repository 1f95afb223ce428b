package garbagecollection_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	lifeclaim "github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// born is when the claims of these tests were created, bound when their instances were.
var (
	born  = noon.Add(-time.Hour)
	bound = born.Add(time.Minute)
)

type change func(*karpenter.NodeClaim)

// parted returns a claim in a partition of a placement group, "" for an unknown one.
func parted(partition string) change {
	return func(c *karpenter.NodeClaim) {
		c.Labels[karpenter.LabelPlacementGroupID], c.Labels[karpenter.LabelPlacementGroupPartition] = "pg-1", partition
	}
}

// in returns a running instance in a partition.
func in(name string, partition int32) event.Listed {
	i := instance(name, "running")
	i.Partition = partition
	return i
}

// reserved returns a claim in a capacity reservation.
func reserved(c *karpenter.NodeClaim) { c.Labels["karpenter.sh/capacity-type"] = "reserved" }

// as returns a running instance of this capacity type.
func as(name, capacityType string) event.Listed {
	i := instance(name, "running")
	i.CapacityType = capacityType
	return i
}

// claim returns a claim that is launched, labelled and tagged as i-<name>.
func claim(name string, changes ...change) *karpenter.NodeClaim {
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.NewTime(born),
		Labels: map[string]string{
			"node.kubernetes.io/instance-type": "m6i.large", "topology.kubernetes.io/zone": "eu-west-1a",
			"topology.kubernetes.io/region": "eu-west-1", "karpenter.sh/capacity-type": "spot",
		},
		Annotations: map[string]string{launchspec.IntentTag: "intent-" + name, karpenter.InstanceTaggedAnnotationKey: "true"},
	}}
	c.Status.ProviderID = "aws:///eu-west-1a/i-" + name
	c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeLaunched, Status: metav1.ConditionTrue}, bound)
	for _, change := range changes {
		change(c)
	}
	return c
}

func unlaunched(c *karpenter.NodeClaim) { c.Status = karpenter.NodeClaimStatus{}; c.Labels = nil }

func annotated(key, value string) change {
	return func(c *karpenter.NodeClaim) { c.Annotations[key] = value }
}

func absentSince(at time.Time) change {
	return annotated(garbagecollection.AbsentAnnotation, at.Format(time.RFC3339Nano))
}

func going(c *karpenter.NodeClaim) { at := metav1.NewTime(noon); c.DeletionTimestamp = &at }

func created(at time.Time) change {
	return func(c *karpenter.NodeClaim) { c.CreationTimestamp = metav1.NewTime(at) }
}

// instance returns the instance of a claim of that name.
func instance(name, state string) event.Listed {
	return event.Listed{InstanceID: "i-" + name, State: state, Intent: "intent-" + name, Claim: name}
}

// findingNames contains the names of the findings.
type findingNames struct{ Bind, Orphans, Absent, Gone, Unlabelled, Parted, Tagged, Demoted, Returned []string }

func names(f garbagecollection.Findings) findingNames {
	var out findingNames
	for _, i := range f.Unbound {
		out.Bind = append(out.Bind, i.InstanceID)
	}
	for _, i := range f.Orphans {
		out.Orphans = append(out.Orphans, i.InstanceID)
	}
	for _, b := range f.Unlabelled {
		out.Unlabelled = append(out.Unlabelled, b.Claim.Name)
	}
	for _, b := range f.Partitioned {
		out.Parted = append(out.Parted, b.Claim.Name)
	}
	for _, list := range []struct {
		claims []*karpenter.NodeClaim
		into   *[]string
	}{{f.Absent, &out.Absent}, {f.Gone, &out.Gone}, {f.Tagged, &out.Tagged}, {f.Demoted, &out.Demoted}, {f.Returned, &out.Returned}} {
		for _, c := range list.claims {
			*list.into = append(*list.into, c.Name)
		}
	}
	return out
}

func TestCompareInventory(t *testing.T) {
	one := []string{"a"}
	horizon := noon.Add(-garbagecollection.LaunchHorizon - garbagecollection.SettleTime)
	for _, test := range []struct {
		name  string
		claim *karpenter.NodeClaim
		shown []event.Listed
		ready bool
		want  findingNames
	}{
		{"running", claim("a"), []event.Listed{instance("a", "running")}, false, findingNames{}},
		{"a stopped instance is not gone", claim("a"), []event.Listed{instance("a", "stopped")}, false, findingNames{}},
		{"an instance that is shutting down is not gone", claim("a"), []event.Listed{instance("a", "shutting-down")}, false, findingNames{}},
		{"reported as terminated", claim("a"), []event.Listed{instance("a", "terminated")}, true, findingNames{Gone: one}},
		{"reported as terminated, its node is not ready", claim("a"), []event.Listed{instance("a", "terminated")}, false, findingNames{Gone: one}},

		{"absent for the first time", claim("a"), nil, false, findingNames{Absent: one}},
		{"absent for the second time", claim("a", absentSince(noon.Add(-time.Minute))), nil, false, findingNames{Gone: one}},
		{"absent twice, too close together", claim("a", absentSince(noon.Add(-garbagecollection.InventoryGap+1))), nil, false, findingNames{}},
		{"absent twice, just far enough apart", claim("a", absentSince(noon.Add(-garbagecollection.InventoryGap))), nil, false, findingNames{Gone: one}},
		{"absent twice in the same inventory", claim("a", absentSince(noon)), nil, false, findingNames{}},
		{"absent, with an invalid mark", claim("a", annotated(garbagecollection.AbsentAnnotation, "x")), nil, false, findingNames{Absent: one}},
		{"absent, but its node is ready", claim("a", absentSince(noon.Add(-time.Minute))), nil, true, findingNames{}},
		{"absent, already marked as gone", claim("a", absentSince(noon.Add(-time.Minute)), annotated(garbagecollection.GoneAnnotation, "x")), nil, false, findingNames{}},
		{"absent, too soon after its launch", claim("a", func(c *karpenter.NodeClaim) {
			c.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-garbagecollection.SettleTime + 1))
		}), nil, false, findingNames{}},
		{"absent, long enough after its launch", claim("a", func(c *karpenter.NodeClaim) {
			c.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-garbagecollection.SettleTime))
		}), nil, false, findingNames{Absent: one}},
		{"absent, five minutes after its launch by the inventory's clock, which is almost a minute ahead", claim("a", absentSince(noon.Add(-time.Minute)), func(c *karpenter.NodeClaim) {
			c.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-6*time.Minute + 1))
		}), nil, false, findingNames{}},
		{"absent, with an unknown launch time", claim("a", func(c *karpenter.NodeClaim) { c.Status.Conditions = nil }), nil, false, findingNames{}},
		{"present again", claim("a", absentSince(noon.Add(-time.Minute))), []event.Listed{instance("a", "running")}, false, findingNames{Returned: one}},

		{"not launched yet", claim("a", unlaunched), nil, false, findingNames{}},
		{"not launched in hours", claim("a", unlaunched, created(noon.Add(-9*time.Hour))), nil, false, findingNames{}},
		{"being deleted, but may still be launched", claim("a", unlaunched, going, created(horizon.Add(1))), nil, false, findingNames{}},
		{"being deleted, and can no longer be launched", claim("a", unlaunched, going, created(horizon)), nil, false, findingNames{Absent: one}},
		{"being deleted, absent for the second time", claim("a", unlaunched, going, created(horizon), absentSince(noon.Add(-time.Minute))), nil, false, findingNames{Gone: one}},
		{"being deleted, but launched", claim("a", unlaunched, going, created(horizon), absentSince(noon.Add(-time.Minute))), []event.Listed{instance("a", "running")}, false, findingNames{Bind: []string{"i-a"}}},

		{"launched without a launch result", claim("a", unlaunched), []event.Listed{instance("a", "pending")}, false, findingNames{Bind: []string{"i-a"}}},
		{"launched and already terminated", claim("a", unlaunched), []event.Listed{instance("a", "terminated")}, false, findingNames{}},
		{"launched and shutting down", claim("a", unlaunched), []event.Listed{instance("a", "shutting-down")}, false, findingNames{}},
		{"more instances than claims", claim("a", unlaunched), []event.Listed{instance("a", "running"), {InstanceID: "i-b", State: "running", Intent: "intent-a"}}, false, findingNames{Bind: []string{"i-a"}, Orphans: []string{"i-b"}}},

		{"no claim", claim("b"), []event.Listed{instance("a", "running"), instance("b", "running")}, false, findingNames{Orphans: []string{"i-a"}}},
		{"no claim, stopped", claim("b"), []event.Listed{instance("a", "stopped"), instance("b", "running")}, false, findingNames{Orphans: []string{"i-a"}}},
		{"no claim, but already terminating", claim("b"), []event.Listed{instance("a", "shutting-down"), instance("c", "terminated"), instance("b", "running")}, false, findingNames{}},
		{"no claim, launched by Karpenter", claim("b", unlaunched), []event.Listed{{InstanceID: "i-x", State: "running", NodePool: "default"}}, false, findingNames{Orphans: []string{"i-x"}}},
		{"no claim, launched by Karpenter without a NodePool", claim("b", unlaunched), []event.Listed{{InstanceID: "i-x", State: "running", Claim: "mine"}}, false, findingNames{Orphans: []string{"i-x"}}},
		{"no claim, of a managed node group", claim("b", unlaunched), []event.Listed{{InstanceID: "i-x", State: "running"}}, false, findingNames{}},

		{"bound, without labels", claim("a", func(c *karpenter.NodeClaim) { c.Labels = nil }), []event.Listed{instance("a", "running")}, false, findingNames{Unlabelled: one}},
		{"of another owner, without labels", claim("a", func(c *karpenter.NodeClaim) { c.Labels, c.Annotations = nil, nil }), []event.Listed{{InstanceID: "i-a", State: "running"}}, false, findingNames{}},
		{"tagged in EC2, but not on the claim", claim("a", annotated(karpenter.InstanceTaggedAnnotationKey, "")), []event.Listed{instance("a", "running")}, false, findingNames{Tagged: one}},
		{"partition missing on the claim", claim("a", parted("")), []event.Listed{in("a", 3)}, false, findingNames{Parted: one}},
		{"the first partition missing on the claim", claim("a", parted("")), []event.Listed{in("a", 1)}, false, findingNames{Parted: one}},
		{"partition unknown in EC2", claim("a", parted("")), []event.Listed{in("a", 0)}, false, findingNames{}},
		{"partition already on the claim", claim("a", parted("3")), []event.Listed{in("a", 3)}, false, findingNames{}},
		{"not in a placement group", claim("a"), []event.Listed{in("a", 3)}, false, findingNames{}},
		{"its reservation ended", claim("a", reserved), []event.Listed{as("a", "on-demand")}, false, findingNames{Demoted: one}},
		{"its reservation is still used", claim("a", reserved), []event.Listed{as("a", "reserved")}, false, findingNames{}},
		{"always on demand", claim("a"), []event.Listed{as("a", "on-demand")}, false, findingNames{}},
		{"its reservation ended while it is being deleted", claim("a", reserved, going), []event.Listed{as("a", "on-demand")}, false, findingNames{}},
		{"not tagged yet in EC2", claim("a", annotated(karpenter.InstanceTaggedAnnotationKey, "")), []event.Listed{{InstanceID: "i-a", State: "running", Intent: "intent-a"}}, false, findingNames{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inventory := event.Inventory{Started: noon, Instances: test.shown}
			f := garbagecollection.CompareInventory(inventory, []*karpenter.NodeClaim{test.claim}, map[string]bool{test.claim.Name: test.ready})
			if diff := cmp.Diff(test.want, names(f)); diff != "" {
				t.Error(diff)
			}
			if !f.Started.Equal(noon) {
				t.Errorf("got start time %s", f.Started)
			}
		})
	}
}

// Claims of one intent get at most one of its instances each.
func TestClaimsOfOneIntent(t *testing.T) {
	same := annotated(launchspec.IntentTag, "intent")
	claims := []*karpenter.NodeClaim{claim("a", same), claim("b", same, unlaunched), claim("c", same, unlaunched)}
	shown := []event.Listed{
		{InstanceID: "i-a", State: "running", Intent: "intent"}, {InstanceID: "i-1", State: "running", Intent: "intent"},
		{InstanceID: "i-2", State: "running", Intent: "intent"}, {InstanceID: "i-3", State: "running", Intent: "intent"},
	}
	f := garbagecollection.CompareInventory(event.Inventory{Started: noon, Instances: shown}, claims, nil)
	if diff := cmp.Diff(findingNames{Bind: []string{"i-1", "i-2"}, Orphans: []string{"i-3"}}, names(f)); diff != "" {
		t.Error(diff)
	}
}

func TestLimitRemovals(t *testing.T) {
	for _, test := range []struct {
		name                         string
		orphans, lost, shown, others int
		safe                         bool
	}{
		{"nothing", 0, 0, 0, 50, true},
		{"three orphans in a small cluster", 3, 0, 0, 2, true},
		{"four orphans in a small cluster", 4, 0, 0, 2, false},
		{"three absent instances in a small cluster", 0, 3, 0, 2, true},
		{"orphans and absent instances are added", 2, 2, 0, 20, false},
		{"a tenth of a large cluster", 5, 5, 0, 95, true},
		{"more than a tenth of a large cluster", 6, 5, 0, 95, false},
		{"terminated instances do not count", 0, 0, 40, 2, true},
		{"terminated instances are removed beyond the limit", 3, 2, 7, 2, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var claims []*karpenter.NodeClaim
			inventory := event.Inventory{Started: noon}
			for i := range test.others {
				name := fmt.Sprintf("other%d", i)
				claims = append(claims, claim(name))
				inventory.Instances = append(inventory.Instances, instance(name, "running"))
			}
			for i := range test.lost {
				claims = append(claims, claim(fmt.Sprintf("lost%d", i), absentSince(bound.Add(2*time.Minute))))
			}
			for i := range test.shown {
				name := fmt.Sprintf("shown%d", i)
				claims = append(claims, claim(name))
				inventory.Instances = append(inventory.Instances, instance(name, "terminated"))
			}
			for i := range test.orphans {
				inventory.Instances = append(inventory.Instances, instance(fmt.Sprintf("orphan%d", i), "running"))
			}
			f := garbagecollection.CompareInventory(inventory, claims, nil)
			if len(f.Orphans) != test.orphans || len(f.Gone) != test.lost+test.shown {
				t.Fatalf("%d orphans, %d gone", len(f.Orphans), len(f.Gone))
			}
			rest, err := f.LimitRemovals()
			if (err == nil) != test.safe {
				t.Fatalf("LimitRemovals returned %v", err)
			}
			if test.safe {
				if diff := cmp.Diff(names(f), names(rest)); diff != "" {
					t.Errorf("a safe removal was reduced: %s", diff)
				}
				return
			}
			if len(rest.Orphans) != 0 || len(rest.Gone) != test.shown || len(f.Gone) != test.lost+test.shown {
				t.Errorf("an unsafe removal still removes %d orphans and %d claims, of %d", len(rest.Orphans), len(rest.Gone), len(f.Gone))
			}
			if !fault.Is(err, fault.Denied) || fault.FindHint(err) == "" || !strings.Contains(err.Error(), "orphan0") && test.orphans > 0 {
				t.Errorf("the error has the wrong kind, no hint or no orphan's name: %v", err)
			}
		})
	}
}

// A claim is removed only when its last request can no longer launch anything: the request is sent
// at the end of the launch timeout, and the launcher starts just before its expiry and uses all of
// its time.
func TestLaunchHorizonOutlastsTheLastLaunch(t *testing.T) {
	sent := lifeclaim.LaunchTimeout
	expires := sent + event.LaunchRequestedType.TTL()
	launched := expires + cloud.LaunchTimeout
	if event.LaunchRequestedType.TTL() <= 0 || garbagecollection.LaunchHorizon < launched+garbagecollection.MaxClockSkew {
		t.Errorf("claims are removed %s after their creation, but may be launched until %s after it", garbagecollection.LaunchHorizon, launched)
	}
}
