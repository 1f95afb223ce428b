// Package garbagecollection finds instances without a NodeClaim, NodeClaims without
// an instance and Nodes without a NodeClaim, and bounds how many of them are removed
// at once. It is pure except for Breaker, which counts over several messages.
//
// The invariants:
//
//   - Absence from one inventory proves nothing. A launched claim's instance is gone
//     when EC2 shows it terminated, or when two complete inventories, each begun well
//     after the launch and at least InventoryGap apart, lack it and its node is not
//     ready.
//   - A claim whose launch may still be in flight is never treated as unlaunched.
//   - An instance with our tags and without a claim is an orphan. Orphans are not
//     adopted, and instances of other owners are not touched.
//   - An orphan node is touched only while it is being deleted, carries our finalizer
//     and names a NodePool, and never together with many others: many at once look
//     like claims that cannot be read, not like claims that are gone.
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
	// AbsentAnnotation is when the first inventory began that lacked the claim's
	// instance, RFC 3339.
	AbsentAnnotation = "joist.sh/absent-since"
	// GoneAnnotation is when the claim's instance was found to be no more.
	GoneAnnotation = "joist.sh/instance-gone"
	// SettleTime is how long after a launch an inventory must begin in order to
	// say anything by leaving an instance out: twice the 30 s that EC2's
	// descriptions may lag.
	SettleTime = 60 * time.Second
	// InventoryGap is how far apart two inventories must begin to prove an absence together:
	// as long as EC2's descriptions may lag, so that both do not show one lag.
	InventoryGap = 30 * time.Second
	// MaxClockSkew is how far clocks may disagree.
	MaxClockSkew = time.Minute
)

// LaunchHorizon is how long after a claim's creation its launch can still happen: requests
// are sent for nodeclaim.LaunchTimeout, the last one expires after the life of its type, the
// launcher may begin with it until then, and clocks may disagree.
var LaunchHorizon = nodeclaim.LaunchTimeout + event.LaunchRequestedType.Life() + cloud.LaunchTimeout + MaxClockSkew

// CheckStart refuses, as fault.Poison, an inventory that began later than now by any
// clock that can be trusted: it would make every inventory after it look old.
func CheckStart(started, now time.Time) error {
	if ahead := started.Sub(now); ahead > MaxClockSkew {
		return fault.F("taking an inventory", fault.Poison, "it began %s from now", ahead.Round(time.Second)).
			WithHint("compare the clocks of catalog and lifecycle; find out who sent this message")
	}
	return nil
}

// BoundClaim is a claim and the instance that it has.
type BoundClaim struct {
	Claim    *karpenter.NodeClaim
	Instance event.Listed
}

// Findings are what an inventory means for the claims.
type Findings struct {
	Started time.Time
	// Bind lists instances with an intent that has a claim without instance.
	Bind []event.Listed
	// Orphans lists instances of ours for which no claim stands.
	Orphans []event.Listed
	// Absent lists claims whose instance is missing for the first time.
	Absent []*karpenter.NodeClaim
	// Gone lists claims whose instance is no more, and that do not say so or stay.
	Gone []*karpenter.NodeClaim
	// Unlabelled lists claims that were bound and not yet labelled.
	Unlabelled []BoundClaim
	// Tagged lists claims whose instance carries their tags, not yet noted.
	Tagged []*karpenter.NodeClaim
	// Parted lists claims whose instance's partition was not known.
	Parted []BoundClaim
	// Demoted lists claims whose reservation has ended under them.
	Demoted []*karpenter.NodeClaim
	// Returned lists claims whose instance was missing once and is back.
	Returned []*karpenter.NodeClaim
	// lost are those of Gone that had an instance which is now merely missing, and
	// size what the cluster has of ours: instances or claims, whichever are more.
	lost []*karpenter.NodeClaim
	size int
}

// CompareInventory finds what an inventory means. ready tells, by claim, whether its
// node is Ready.
func CompareInventory(inventory event.Inventory, claims []*karpenter.NodeClaim, ready map[string]bool, now time.Time) Findings {
	f := Findings{Started: inventory.Started}
	byInstance := map[string]*karpenter.NodeClaim{}
	waiting := map[string]int{}
	for _, c := range claims {
		if id, err := c.Instance(); err == nil {
			byInstance[id.InstanceID] = c
		} else if intent := c.Annotations[launchspec.IntentTag]; intent != "" {
			waiting[intent]++
		}
	}
	seen := map[string]bool{}
	for _, i := range inventory.Instances {
		f.instance(i, byInstance[i.InstanceID], waiting, seen)
	}
	for _, c := range claims {
		f.claim(c, seen, ready[c.Name], now)
	}
	f.size = max(f.size, len(claims))
	return f
}

// Empty reports that nothing is to be done.
func (f Findings) Empty() bool {
	return len(f.Bind)+len(f.Orphans)+len(f.Absent)+len(f.Gone)+len(f.Unlabelled)+len(f.Tagged)+len(f.Parted)+len(f.Demoted)+len(f.Returned) == 0
}

// instance files one instance.
func (f *Findings) instance(i event.Listed, claim *karpenter.NodeClaim, waiting map[string]int, seen map[string]bool) {
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
		f.bound(claim, i)
	case gone || i.State == string(cloud.ShuttingDown):
	case waiting[i.Intent] > 0:
		waiting[i.Intent]--
		f.Bind = append(f.Bind, i)
		seen[i.Intent] = true
	case managedInstance(i):
		f.Orphans = append(f.Orphans, i)
	}
}

// bound files what an instance that runs tells of its claim.
func (f *Findings) bound(claim *karpenter.NodeClaim, i event.Listed) {
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
		f.Parted = append(f.Parted, BoundClaim{claim, i})
	}
	if demoted(claim, i) {
		f.Demoted = append(f.Demoted, claim)
	}
}

// demoted reports whether the instance of a reserved claim is billed on demand by
// now. A claim that goes need not say so any more.
func demoted(c *karpenter.NodeClaim, i event.Listed) bool {
	key := karpenter.CapacityTypeLabelKey
	return c.DeletionTimestamp == nil && c.Labels[key] == karpenter.CapacityTypeReserved && i.CapacityType == karpenter.CapacityTypeOnDemand
}

// managedInstance reports whether a node autoscaler has launched the instance, we or Karpenter
// before us. Managed node groups and instances that people started in the cluster
// carry neither tag.
func managedInstance(i event.Listed) bool { return i.NodePool != "" || i.Intent != "" }

// claim files a claim that the inventory does not show.
func (f *Findings) claim(c *karpenter.NodeClaim, seen map[string]bool, ready bool, now time.Time) {
	if seen[c.Name] || ready || c.Annotations[GoneAnnotation] != "" || now.Before(f.Started) {
		return
	}
	if c.Status.ProviderID == "" && seen[c.Annotations[launchspec.IntentTag]] {
		return
	}
	from, ok := settled(c)
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

// settled says from when on the claim's instance ought to be seen. A claim
// without an instance matters only once it is being deleted: until then its
// launch is asked for again.
func settled(c *karpenter.NodeClaim) (time.Time, bool) {
	if c.Status.ProviderID == "" {
		return c.CreationTimestamp.Add(LaunchHorizon), c.DeletionTimestamp != nil
	}
	launched, ok := c.Status.Conditions.Get(karpenter.ConditionTypeLaunched)
	return launched.LastTransitionTime.Time, ok
}

// LimitRemovals gives what of the findings may be carried out, and why the rest may not.
//
// A sweep that would touch too much of the cluster at once, more than three and
// more than a tenth (architecture, "absence is not death"), leaves orphans and
// lost instances alone. What EC2 shows terminated, and claims that never had an
// instance, do not count: removing those takes nothing away. They go on, as do
// the notes about claims: a storm of interruptions must not be held up by the
// very breaker that it may set off.
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
	err := fault.F("sweeping", fault.Denied, "it would touch %d of %d, and %d is the most at once: %s",
		touched, f.size, allowed, strings.Join(names, " ")).
		WithHint("look at these before anything else; delete the claims or instances by hand if they are really gone")
	f.Gone = slices.DeleteFunc(slices.Clone(f.Gone), func(c *karpenter.NodeClaim) bool { return slices.Contains(f.lost, c) })
	f.Orphans, f.lost = nil, nil
	return f, err
}
