package event_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

// A body rejects a reference to a document of another kind than its field's.
func TestReferencesAreOfTheirKind(t *testing.T) {
	ref := func(kind string) event.Ref { return event.Ref{Kind: kind, Digest: event.DigestOf(nil), Size: 1} }
	kinds := []string{event.IntentKind, event.BatchKind, event.SnapshotKind, event.PlanKind, event.CatalogueKind, event.InventoryKind, ""}
	for field, c := range map[string]struct {
		kind string
		body func(event.Ref) event.Body
	}{
		"intent of a launch": {event.IntentKind, func(r event.Ref) event.Body { return event.LaunchRequested{Intent: "i", Claims: 1, IntentRef: r} }},
		"batch":              {event.BatchKind, func(r event.Ref) event.Body { return event.PodsUnschedulable{Outbox: "o", Seq: 1, Batch: r} }},
		"batch of a plan": {event.BatchKind, func(r event.Ref) event.Body {
			return event.PlanMade{Outbox: "o", Seq: 1, Batch: r, Plan: ref(event.PlanKind)}
		}},
		"plan": {event.PlanKind, func(r event.Ref) event.Body {
			return event.PlanMade{Outbox: "o", Seq: 1, Batch: ref(event.BatchKind), Plan: r}
		}},
		"snapshot":               {event.SnapshotKind, func(r event.Ref) event.Body { return event.ClusterSnapshot{Taken: noon, Snapshot: r} }},
		"catalogue":              {event.CatalogueKind, func(r event.Ref) event.Body { return event.CatalogRefreshed{Catalogue: r} }},
		"inventory":              {event.InventoryKind, func(r event.Ref) event.Body { return event.InstancesListed{Started: noon, Inventory: r} }},
		"snapshot of a proposal": {event.SnapshotKind, func(r event.Ref) event.Body { return proposal(r, event.Ref{}) }},
		"snapshot of what stays": {event.SnapshotKind, func(r event.Ref) event.Body {
			return event.NodesKept{Kept: []event.Kept{{Rule: "static", Claims: []string{"a"}}}, Snapshot: r}
		}},
		"plan of a proposal": {event.PlanKind, func(r event.Ref) event.Body { return proposal(ref(event.SnapshotKind), r) }},
	} {
		for _, kind := range kinds {
			if err := c.body(ref(kind)).Validate(); (err == nil) != (kind == c.kind) {
				t.Errorf("%s of kind %q: %v", field, kind, err)
			}
		}
	}
}

func proposal(snapshot, plan event.Ref) event.Body {
	return event.DisruptionProposed{Proposal: "p", Claims: []string{"a"}, Phase: event.Proposed, Snapshot: snapshot, Plan: plan}
}

// A message expires no later than its type's TTL allows, even with a later expires attribute.
func TestExpiryIsBoundedByTheType(t *testing.T) {
	e, err := event.Maker{Service: "watcher", Cluster: event.Cluster{Name: "prod"}}.New(noon, event.InventoryWanted{Asked: noon}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Expires = noon.Add(1000 * time.Hour)
	data, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := event.InventoryWantedType.Spec()
	if err != nil {
		t.Fatal(err)
	}
	got, err := event.Decode(data)
	if want := noon.Add(spec.TTL); err != nil || !got.Expires.Equal(want) {
		t.Errorf("it expires at %s, want %s: %v", got.Expires, want, err)
	}
}

// A plan cannot launch with a subnet, security group or image that has no id.
func TestResolvedPartsHaveIDs(t *testing.T) {
	for name, body := range map[string]event.NodeClassResolved{
		"a subnet without an id":      {Subnets: []event.Subnet{{Zone: "eu-west-1a"}}},
		"a subnet without a zone":     {Subnets: []event.Subnet{{ID: "subnet-1"}}},
		"a security group without id": {SecurityGroups: []event.SecurityGroup{{Name: "nodes"}}},
		"an image without an id":      {Images: []event.Image{{Name: "al2023"}}},
		"a second subnet without id":  {Subnets: []event.Subnet{{ID: "subnet-1", Zone: "eu-west-1a"}, {Zone: "eu-west-1b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			body.Name, body.UID = "default", "uid"
			if err := body.Validate(); err == nil {
				t.Error("it is valid")
			}
		})
	}
}
