// Package garbagecollection finds instances without a NodeClaim, NodeClaims without an instance and
// Nodes without a NodeClaim, and limits how many of them are removed at once. It is pure except for
// Breaker, which counts over several messages.
//
// The invariants:
//   - One inventory without an instance does not prove that the instance is gone. It is gone when EC2
//     reports it as terminated, or when two complete inventories, each begun well after the launch and
//     at least InventoryGap apart, lack it, its node is not ready and its zone is not shifted away.
//   - A claim whose launch may still be in flight is never treated as unlaunched.
//   - A claim of another provider, and its instance, are not changed.
//   - An instance with Joist's tags and without a claim is an orphan. Orphans are not adopted, and
//     instances of other owners are not changed.
//   - An orphan node is changed only while it is being deleted, has Joist's finalizer and names a
//     NodePool, and never together with many others: if there are many at once, the claims probably
//     could not be read.
package garbagecollection

import (
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

const (
	// AbsentAnnotation is when the first inventory without the claim's instance began, RFC 3339.
	AbsentAnnotation = "joist.sh/absent-since"
	// GoneAnnotation is when the claim's instance was found terminated.
	GoneAnnotation = "joist.sh/instance-gone"
	// SettleTime is the minimum time from a launch to the start of an inventory for an absence in
	// it to count. EC2 may not show an instance for minutes after its launch, and AWS recommends to
	// repeat a Describe with waits of up to five minutes
	// (https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html). The clock of the
	// inventory may also be ahead of that of the launch.
	SettleTime = 5*time.Minute + MaxClockSkew
	// InventoryGap is the minimum time between the starts of two inventories that together prove an
	// absence.
	InventoryGap = 30 * time.Second
	// MaxClockSkew is how far clocks may disagree.
	MaxClockSkew = time.Minute
)

// LaunchHorizon is how long after a claim's creation its launch can still happen: requests are sent
// for nodeclaim.LaunchTimeout, the last one expires after the expiry of its type, the launcher may
// start until then, and clocks may differ.
var LaunchHorizon = nodeclaim.LaunchTimeout + event.LaunchRequestedType.TTL() + cloud.LaunchTimeout + MaxClockSkew

// CheckStart returns fault.Poison for an inventory whose start is in the future by more than
// MaxClockSkew. It would make every later inventory look old.
func CheckStart(started, now time.Time) error {
	if ahead := started.Sub(now); ahead > MaxClockSkew {
		return fault.F("reading an inventory", fault.Poison, "its start time is %s in the future", ahead.Round(time.Second)).
			WithHint("compare the clocks of catalog and lifecycle, and find the sender of this message")
	}
	return nil
}

// BoundClaim is a claim and its instance.
type BoundClaim struct {
	Claim    *karpenter.NodeClaim
	Instance event.Listed
}

// Findings are the differences between an inventory and the claims.
type Findings struct {
	Started time.Time
	// Unbound lists instances with an intent that has a claim without an instance.
	Unbound []event.Listed
	// Orphans lists Joist's instances without a claim.
	Orphans []event.Listed
	// Absent lists claims whose instance is missing for the first time.
	Absent []*karpenter.NodeClaim
	// Gone lists claims whose instance is terminated and that are not marked or not being deleted.
	Gone []*karpenter.NodeClaim
	// Unlabelled lists claims that are bound and not labelled yet.
	Unlabelled []BoundClaim
	// Tagged lists claims whose instance is tagged and that do not record it yet.
	Tagged []*karpenter.NodeClaim
	// Partitioned lists claims whose instance's placement group partition was unknown.
	Partitioned []BoundClaim
	// Demoted lists claims whose capacity reservation has ended.
	Demoted []*karpenter.NodeClaim
	// Returned lists claims whose instance was missing and is present again.
	Returned []*karpenter.NodeClaim
	// lost are the claims of Gone whose instance is missing, not reported as terminated. size is
	// the number of Joist's instances or claims, the larger of both.
	lost []*karpenter.NodeClaim
	size int
}

// CompareInventory compares an inventory with the claims. present reports for each claim name whether
// its instance counts as present even if the inventory lacks it, for example because its node is Ready.
func CompareInventory(inventory event.Inventory, claims []*karpenter.NodeClaim, present map[string]bool) Findings {
	f := Findings{Started: inventory.Started}
	byInstance := map[string]*karpenter.NodeClaim{}
	waiting := map[string]int{}
	for _, c := range claims {
		if id, err := c.Instance(); err == nil {
			byInstance[id.InstanceID] = c
		} else if intent := c.Annotations[launchspec.IntentTag]; intent != "" && c.IsManaged() {
			waiting[intent]++
		}
	}
	seen := map[string]bool{}
	for _, i := range inventory.Instances {
		if claim := byInstance[i.InstanceID]; claim != nil && !claim.IsManaged() {
			continue
		}
		f.addInstance(i, byInstance[i.InstanceID], waiting, seen)
	}
	managed := 0
	for _, c := range claims {
		if c.IsManaged() {
			f.addClaim(c, seen, present[c.Name])
			managed++
		}
	}
	f.size = max(f.size, managed)
	return f
}

// Empty reports whether there is nothing to do.
func (f Findings) Empty() bool {
	return len(f.Unbound)+len(f.Orphans)+len(f.Absent)+len(f.Gone)+len(f.Unlabelled)+len(f.Tagged)+len(f.Partitioned)+len(f.Demoted)+len(f.Returned) == 0
}

// addInstance classifies one instance.
func (f *Findings) addInstance(i event.Listed, claim *karpenter.NodeClaim, waiting map[string]int, seen map[string]bool) {
	gone := cloud.State(i.State).Gone()
	if claim != nil || managedInstance(i) {
		f.size++
	}
	switch {
	case claim != nil && gone:
		seen[claim.Name] = true
		if claim.Annotations[GoneAnnotation] == "" || claim.DeletionTimestamp == nil {
			f.Gone = append(f.Gone, claim)
		}
	case claim != nil:
		seen[claim.Name] = true
		f.addBoundClaim(claim, i)
	case gone || i.State == string(cloud.ShuttingDown):
	case waiting[i.Intent] > 0:
		waiting[i.Intent]--
		f.Unbound = append(f.Unbound, i)
		seen[i.Intent] = true
	case managedInstance(i):
		f.Orphans = append(f.Orphans, i)
	}
}

// addBoundClaim classifies a claim with a running instance.
func (f *Findings) addBoundClaim(claim *karpenter.NodeClaim, i event.Listed) {
	if claim.Annotations[AbsentAnnotation] != "" {
		f.Returned = append(f.Returned, claim)
	}
	if !conditions.HasInstanceLabels(claim) && claim.Annotations[launchspec.IntentTag] != "" {
		f.Unlabelled = append(f.Unlabelled, BoundClaim{claim, i})
	}
	if i.Claim == claim.Name && claim.Annotations[karpenter.InstanceTaggedAnnotationKey] == "" {
		f.Tagged = append(f.Tagged, claim)
	}
	if i.Partition > 0 && len(nodeclaim.PendingHooks([]nodeclaim.RegistrationHook{nodeclaim.PartitionHook}, claim)) > 0 {
		f.Partitioned = append(f.Partitioned, BoundClaim{claim, i})
	}
	if isDemoted(claim, i) {
		f.Demoted = append(f.Demoted, claim)
	}
}

// isDemoted reports whether the instance of a reserved claim is billed on demand now. A claim
// that is being deleted is not relabelled.
func isDemoted(c *karpenter.NodeClaim, i event.Listed) bool {
	key := karpenter.CapacityTypeLabelKey
	return c.DeletionTimestamp == nil && c.Labels[key] == karpenter.CapacityTypeReserved && i.CapacityType == karpenter.CapacityTypeOnDemand
}

// managedInstance reports whether Joist or Karpenter launched the instance. Instances of managed
// node groups, and instances that users started, have none of these tags. The NodePool's tag is
// empty if the claim has no NodePool.
func managedInstance(i event.Listed) bool { return i.NodePool != "" || i.Intent != "" || i.Claim != "" }

// addClaim classifies a claim whose instance is not in the inventory. The inventory's clock may be ahead of ours by up to
// MaxClockSkew (CheckStart), which SettleTime and LaunchHorizon allow for.
func (f *Findings) addClaim(c *karpenter.NodeClaim, seen map[string]bool, present bool) {
	if seen[c.Name] || present || c.Annotations[GoneAnnotation] != "" {
		return
	}
	if c.Status.ProviderID == "" && seen[c.Annotations[launchspec.IntentTag]] {
		return
	}
	from, ok := expectedSince(c)
	if !ok || f.Started.Before(from.Add(SettleTime)) {
		return
	}
	first, err := time.Parse(time.RFC3339Nano, c.Annotations[AbsentAnnotation])
	switch {
	case err != nil:
		f.Absent = append(f.Absent, c)
	case !f.Started.Before(first.Add(InventoryGap)):
		f.Gone = append(f.Gone, c)
		if c.Status.ProviderID != "" {
			f.lost = append(f.lost, c)
		}
	}
}

// expectedSince returns since when the claim's instance is expected in inventories. A claim
// without an instance counts only while it is being deleted: until then its launch is requested
// again.
func expectedSince(c *karpenter.NodeClaim) (time.Time, bool) {
	if c.Status.ProviderID == "" {
		return c.CreationTimestamp.Add(LaunchHorizon), c.DeletionTimestamp != nil
	}
	launched, ok := c.Status.Conditions.Get(karpenter.ConditionTypeLaunched)
	return launched.LastTransitionTime.Time, ok
}

// LimitRemovals returns the findings that may be executed, and why the others may not.
//
// If orphans and lost instances together are more than three and more than a tenth of the cluster,
// no instance is removed. Instances that EC2 reports as terminated, and claims that never had an
// instance, do not count, because removing them does not reduce capacity. They are executed, like
// annotations, so that the breaker does not delay many interruptions at once. The caller limits those
// whose node is ready.
func (f Findings) LimitRemovals() (Findings, error) {
	touched := len(f.Orphans) + len(f.lost)
	allowed := MaxRemovals(f.size)
	if touched <= allowed {
		return f, nil
	}
	var names []string
	for _, o := range f.Orphans {
		names = append(names, o.InstanceID)
	}
	for _, c := range f.lost {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	err := fault.F("collecting garbage", fault.Denied, "%d of %d nodes would be removed, and at most %d may be at once: %s",
		touched, f.size, allowed, strings.Join(names, " ")).
		WithHint("check these first; delete the NodeClaims or instances by hand if they no longer exist")
	f.Gone = slices.DeleteFunc(slices.Clone(f.Gone), func(c *karpenter.NodeClaim) bool { return slices.Contains(f.lost, c) })
	f.Orphans, f.lost = nil, nil
	return f, err
}
