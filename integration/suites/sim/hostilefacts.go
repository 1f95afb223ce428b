package sim

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// forgeBody returns a well-formed body of the type about live objects, or nil if a recorded message is the better
// template.
func (a *attacker) forgeBody(kind event.Type) event.Body { //nolint:gocyclo // one case for each type
	now, random := a.world.Now(), a.random
	at := now.Add(pick(random, []time.Duration{0, 0, -time.Second, -time.Hour, 50 * time.Second, time.Hour}))
	claim, instance := a.pickClaim(), a.pickHostileInstance()
	intent := claim.Annotations[intentTag]
	offering := event.Offering{InstanceType: instance.Type, Zone: instance.Zone, CapacityType: pick(random, []string{"spot", "on-demand", "reserved", "x"})}
	switch kind {
	case event.NodeNoticedType:
		return event.NodeNoticed{
			Kind:       pick(random, []event.NoticeKind{event.SpotInterruption, event.RebalanceRecommendation, event.ScheduledChange, event.StateChange, event.ReservationInterruption, event.StatusImpaired, "x"}),
			InstanceID: instance.ID, Deadline: pick(random, []time.Time{{}, at, now.Add(2 * time.Minute)}), Noticed: at, Offering: offering,
		}
	case event.InstanceGoneType:
		return event.InstanceGone{InstanceID: instance.ID, Shown: at}
	case event.InstancesListedType:
		return a.forgeInventory(at)
	case event.LaunchSettledType:
		b := event.LaunchSettled{Intent: pick(random, []string{intent, intent, "unknown", instance.Tags[intentTag]}), Wanted: 1 + random.IntN(3), Spent: random.IntN(2) == 0}
		for range random.IntN(b.Wanted + 1) {
			other := a.pickHostileInstance()
			b.Instances = append(b.Instances, event.Launched{InstanceID: other.ID, Offering: event.Offering{InstanceType: other.Type, Zone: other.Zone, CapacityType: "spot"}, ImageID: other.ImageID})
		}
		if len(b.Instances) < b.Wanted {
			b.Refusals = []event.Refusal{{Code: pick(random, []string{"InsufficientInstanceCapacity", "UnauthorizedOperation", "x"}), Message: "\x1b[2J", Blamed: []event.Offering{offering, {}}}}
		}
		return b
	case event.RebootSettledType:
		return event.RebootSettled{InstanceID: instance.ID, Claim: claim.Name, ClaimUID: string(claim.UID), Operation: "0123456789abcdef", Refusal: pick(random, []string{"", "no"})}
	case event.DisruptionProposedType:
		return event.DisruptionProposed{
			Proposal: pick(random, []string{"forged", claim.Name, string(event.DigestOf([]byte(at.String()))[:16])}), Phase: pick(random, []event.Phase{event.Proposed, event.Confirmed, event.Confirmed, event.Dropped}),
			Reason: pick(random, []string{"Underutilized", "Empty", "Drifted", "Unhealthy", "Expired", "x"}), Claims: a.pickClaimNames(), Method: "forged", Moved: random.IntN(5),
			Snapshot: a.pickRef(event.SnapshotKind), Decided: at,
		}
	case event.NodesKeptType:
		return event.NodesKept{Kept: []event.Kept{{Rule: "no-saving", Subject: "a/b", Detail: "\x1b[2J", Claims: a.pickClaimNames()}}, Snapshot: a.pickRef(event.SnapshotKind), Decided: at}
	case event.LaunchRequestedType:
		return event.LaunchRequested{Intent: pick(random, []string{intent, "unknown"}), IntentRef: a.pickRef(event.IntentKind), Claims: 1 + random.IntN(3)}
	case event.TerminateRequestedType:
		return event.TerminateRequested{InstanceID: instance.ID, Claim: pick(random, []string{"", claim.Name}), ClaimUID: pick(random, []string{"", string(claim.UID)}), Intent: pick(random, []string{"", intent}), Reason: "forged"}
	case event.TagRequestedType:
		return event.TagRequested{InstanceID: instance.ID, ClaimUID: string(claim.UID), Tags: map[string]string{"karpenter.sh/nodeclaim": claim.Name, "Name": "x", "kubernetes.io/cluster/demo": "owned"}}
	case event.RebootRequestedType:
		return event.RebootRequested{InstanceID: instance.ID, Claim: claim.Name, ClaimUID: string(claim.UID), Operation: "0123456789abcdef"}
	case event.TickType:
		return event.Tick{Want: pick(random, []string{event.WantCatalogue, event.WantInventory, event.WantStatus, event.WantTemplates, "x"}), Due: at}
	case event.InventoryWantedType:
		return event.InventoryWanted{Asked: at}
	}
	return nil
}

// pickClaim returns a random NodeClaim; an empty one if none exists.
func (a *attacker) pickClaim() *karpenter.NodeClaim {
	if claims := a.listObjects(cluster.NodeClaims); len(claims) > 0 {
		return claims[a.random.IntN(len(claims))].(*karpenter.NodeClaim)
	}
	return &karpenter.NodeClaim{}
}

func (a *attacker) pickClaimNames() []string {
	out := []string{"not-there"}
	for _, o := range a.listObjects(cluster.NodeClaims) {
		if a.random.IntN(2) == 0 {
			out = append(out, o.GetName())
		}
	}
	if len(out) > 1 && a.random.IntN(4) > 0 {
		return out[1:]
	}
	return out
}

// pickHostileInstance returns a random instance, also of the other cluster and of the past.
func (a *attacker) pickHostileInstance() memcloud.Record {
	return pick(a.random, a.world.Cloud.Records())
}

// pickRef returns a reference to a stored document of a kind, sometimes to a forged one.
func (a *attacker) pickRef(kind string) event.Ref {
	if a.random.IntN(2) == 0 {
		if ref, ok := a.writeMutated(kind); ok {
			return ref
		}
	}
	return a.findRef(kind)
}

// forgeInventory writes an inventory that omits instances, or shows them as terminated or as another's.
func (a *attacker) forgeInventory(at time.Time) event.Body {
	inventory := event.Inventory{Started: at.UTC()}
	state := pick(a.random, []string{"", "terminated", "running", "shutting-down", "x"})
	for _, r := range a.world.Cloud.Records() {
		if r.Tags["karpenter.sh/nodepool"] == "" || a.random.IntN(3) == 0 && state == "" {
			continue
		}
		listed := event.Listed{
			InstanceID: r.ID, State: string(r.State), Intent: r.Tags[intentTag], NodePool: r.Tags["karpenter.sh/nodepool"], Launched: r.Launched, ImageID: r.ImageID, SubnetID: r.SubnetID,
			Offering: event.Offering{InstanceType: r.Type, Zone: r.Zone, CapacityType: "spot"},
		}
		if state != "" && a.random.IntN(2) == 0 {
			listed.State = state
		}
		if a.random.IntN(6) == 0 {
			listed.Intent = pick(a.random, []string{"", "unknown", a.pickClaim().Annotations[intentTag]})
		}
		inventory.Instances = append(inventory.Instances, listed)
	}
	if a.random.IntN(3) == 0 {
		inventory.Instances = append(inventory.Instances, event.Listed{InstanceID: "i-0fffffffffffffff0", State: "running", Intent: "unknown", NodePool: "default"})
	}
	ref, ok := a.storeDocument(event.InventoryKind, inventory)
	if !ok {
		ref = a.findRef(event.InventoryKind)
	}
	return event.InstancesListed{Started: inventory.Started, Inventory: ref, Count: len(inventory.Instances)}
}

// forgeMessage returns a message of a type in the name of a source: a well-formed one, a changed copy of a recorded one,
// or one with changed envelope.
func (a *attacker) forgeMessage(kind event.Type, source string) []byte {
	var text []byte
	if body := a.forgeBody(kind); body != nil {
		maker := event.Maker{Service: source, Cluster: a.world.Identity()}
		if e, err := maker.New(a.world.Now(), body, nil); err == nil {
			text, _ = e.Encode()
		}
	}
	if text == nil || a.random.IntN(3) == 0 && len(a.recorded[kind]) > 0 {
		text = a.changeRecorded(kind)
	}
	var document any
	if json.Unmarshal(text, &document) != nil {
		return []byte(`{"specversion":"1.0","type":"` + string(kind) + `","source":"joist/` + source + `","cluster":"demo","data":{}}`)
	}
	if envelope, ok := document.(map[string]any); ok {
		envelope["source"] = "joist/" + source
		a.changeEnvelope(envelope)
	}
	out, err := json.Marshal(document)
	if err != nil {
		return text
	}
	return out
}

// changeRecorded refreshes a recorded message: new id and times, the sequence number in flight, and forged documents.
func (a *attacker) changeRecorded(kind event.Type) []byte {
	var document map[string]any
	if json.Unmarshal(pick(a.random, a.recorded[kind]), &document) != nil {
		return nil
	}
	now := a.world.Now().UTC()
	document["id"], document["time"], document["expires"] = string(event.DigestOf([]byte(now.String()))[:32]), now.Format(time.RFC3339Nano), now.Add(10*time.Minute).Format(time.RFC3339Nano)
	if data, ok := document["data"].(map[string]any); ok {
		if _, has := data["seq"]; has {
			data["seq"] = a.checker.fence.lastSequence + uint64(a.random.IntN(2))
		}
		for _, field := range []string{"plan", "batch", "snapshot", "catalogue", "inventory", "intentRef"} {
			old, has := data[field].(map[string]any)
			if folder, _ := old["kind"].(string); has && a.random.IntN(4) > 0 {
				data[field] = a.pickRef(folder)
			}
		}
		for _, field := range []string{"taken", "asked", "decided", "started"} {
			if _, has := data[field]; has {
				data[field] = now.Format(time.RFC3339Nano)
			}
		}
	}
	text, err := json.Marshal(document)
	if err != nil {
		return nil
	}
	return text
}

// changeEnvelope changes attributes or data of a third of the messages.
func (a *attacker) changeEnvelope(envelope map[string]any) {
	switch a.random.IntN(9) {
	case 0:
		envelope[pick(a.random, []string{"cluster", "clusteruid", "id", "specversion", "correlation", "traceparent", "subject", "causation", "dataref"})] = hostileValue(a.random, a.liveNames())
	case 1:
		for _, field := range []string{"time", "expires"} {
			envelope[field] = a.world.Now().Add(pick(a.random, []time.Duration{-48 * time.Hour, -time.Minute, time.Hour, 9000 * time.Hour})).UTC().Format(time.RFC3339Nano)
		}
	case 2:
		envelope["data"] = mutate(a.random, envelope["data"], a.liveNames(), 1+a.random.IntN(4))
	}
}

// liveNames are names and ids of the cluster's objects.
func (a *attacker) liveNames() []any {
	out := []any{"default", "lifecycle", a.world.Cluster, string(a.world.Kube.UID())}
	for _, o := range a.listObjects(cluster.NodeClaims) {
		out = append(out, o.GetName(), string(o.GetUID()), o.GetAnnotations()[intentTag])
	}
	for _, r := range a.world.Cloud.Records() {
		out = append(out, r.ID)
	}
	return out
}

// messageTypes returns the types of facts or of commands; with own the types that the attacker produces, otherwise the others.
func (a *attacker) messageTypes(isFact, own bool) []event.Spec {
	return slices.DeleteFunc(slices.Clone(event.Specs), func(s event.Spec) bool {
		return s.IsFact() != isFact || slices.Contains(s.Producers, a.name) != own
	})
}
