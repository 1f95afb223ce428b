package event_test

import (
	"encoding/json"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

var (
	noon  = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	home  = event.Cluster{Name: "prod", UID: "7c0e2b1c-0d7e-4b0f-9a83-2f6b1a1f5f10"}
	maker = event.Maker{Service: "golden", Cluster: home}
)

func ref(kind string) event.Ref {
	return event.Ref{Kind: kind, Digest: event.DigestOf([]byte(kind)), Size: 1234}
}

var offering = event.Offering{InstanceType: "m7g.large", Zone: "eu-west-1a", CapacityType: "spot"}

// sample is one complete body of a type, and how to decode an envelope's data into it.
type sample struct {
	body event.Body
	read func(event.Envelope) (event.Body, error)
}

func of[T event.Body](body T) sample {
	return sample{body, func(e event.Envelope) (event.Body, error) { return event.DecodeBody[T](e) }}
}

var samples = []sample{
	of(event.PodsUnschedulable{Outbox: "uid-1", Seq: 7, Batch: ref("batches")}),
	of(event.ClusterSnapshot{Taken: noon, Snapshot: ref("snapshots")}),
	of(event.NodeClassChanged{
		Name: "default", UID: "uid-2", Generation: 3, Spec: json.RawMessage(`{"role":"node"}`), Asked: noon,
	}),
	of(event.InventoryWanted{Asked: noon}),
	of(event.Tick{Want: event.WantTemplates, Due: noon}),
	of(event.PlanMade{
		Outbox: "uid-1", Seq: 7, Batch: ref("batches"), Plan: ref("plans"), Claims: 2, Nominated: 30, Unplaced: 1, PricePerHr: 0.0734,
	}),
	of(event.DisruptionProposed{
		Proposal: "p-1", Phase: event.Confirmed, Reason: "empty", Claims: []string{"default-abc"}, SavedPerHr: 0.12,
		Snapshot: ref("snapshots"), Decided: noon,
	}),
	of(event.NodesKept{
		Snapshot: ref("snapshots"), Decided: noon,
		Kept: []event.Kept{
			{Rule: "pod-do-not-disrupt", Subject: "shop/web-0", Claims: []string{"default-abc"}},
			{Rule: "pods-unplaceable", Detail: "pod shop/web-1 has no other place", Claims: []string{"default-def", "default-ghi"}},
		},
	}),
	of(event.LaunchRequested{Intent: "3f2a", IntentRef: ref("intents"), Claims: 2}),
	of(event.LaunchSettled{
		Intent: "3f2a", Wanted: 2, Spent: true,
		Instances: []event.Launched{{InstanceID: "i-0123456789abcdef0", Offering: offering, ImageID: "ami-1"}},
		Refusals: []event.Refusal{{
			Code: "InsufficientFreeAddressesInSubnet", Message: "not enough <addresses>", Subnet: "subnet-1",
			Blamed: []event.Offering{{Zone: "eu-west-1b"}},
		}},
	}),
	of(event.TagRequested{InstanceID: "i-0123456789abcdef0", ClaimUID: "uid-3", Tags: map[string]string{"Name": "ip-10-0-0-1"}}),
	of(event.TerminateRequested{InstanceID: "i-0123456789abcdef0", Claim: "default-abc", ClaimUID: "uid-3", Reason: "drained"}),
	of(event.RebootRequested{InstanceID: "i-0123456789abcdef0", Claim: "default-abc", ClaimUID: "uid-3", Operation: "uid-3-1-boot"}),
	of(event.RebootSettled{InstanceID: "i-0123456789abcdef0", Claim: "default-abc", ClaimUID: "uid-3", Operation: "uid-3-1-boot", Refusal: "denied"}),
	of(event.NodeClassEnsure{
		Name: "default", UID: "uid-2", Role: "node", Profile: "prod_1f", Path: "/karpenter/", Asked: noon,
		Tags: map[string]string{"kubernetes.io/cluster/prod": "owned"}, Delete: true,
	}),
	of(event.NodeClassEnsured{
		Name: "default", UID: "uid-2", Role: "node", Profile: "prod_1f", Asked: noon,
		Problem: &event.Problem{Condition: "InstanceProfileReady", Reason: "InstanceProfileRefused", Message: "denied"},
	}),
	of(event.CatalogRefreshed{Region: "eu-west-1", AsOf: noon, Types: 800, Catalogue: ref("catalogues")}),
	of(event.NodeClassResolved{
		Name: "default", UID: "uid-2", Generation: 3, Asked: noon,
		Subnets:        []event.Subnet{{ID: "subnet-1", Zone: "eu-west-1a", ZoneID: "euw1-az1", FreeIPs: 250}},
		SecurityGroups: []event.SecurityGroup{{ID: "sg-1", Name: "nodes"}},
		Images:         []event.Image{{ID: "ami-1", Name: "al2023", Deprecated: true, Requirements: json.RawMessage(`[{"key":"kubernetes.io/arch"}]`)}},
		Problems:       []event.Problem{{Condition: "AMIsReady", Reason: "AMINotFound", Message: "no image"}},
	}),
	of(event.InstancesListed{Started: noon, Inventory: ref(event.InventoryKind), Count: 12}),
	of(event.NodeNoticed{
		Kind: event.SpotInterruption, InstanceID: "i-0123456789abcdef0", Deadline: noon.Add(2 * time.Minute), Noticed: noon,
		Detail: "terminate", Offering: offering,
	}),
	of(event.InstanceGone{InstanceID: "i-0123456789abcdef0", Shown: noon}),
}

// further are bodies with fields that were added after the type's first golden file, by the names of their golden
// files.
var further = map[string]sample{
	"instances.listed.v1-shifts": of(event.InstancesListed{
		Started: noon, Inventory: ref(event.InventoryKind), Count: 12, Shifts: &event.ZonalShifts{Zones: []event.ShiftedZone{
			{ZoneID: "euw1-az1", Until: noon.Add(time.Hour)}, {ZoneID: "euw1-az2"},
		}},
	}),
	"catalog.refreshed.v1-warnings": of(event.CatalogRefreshed{
		Region: "eu-west-1", AsOf: noon, Types: 800, Catalogue: ref("catalogues"),
		Warnings: []string{"on-demand prices: the embedded ones of 2025-05-28, 541 days old, because ISOLATED_VPC is set"},
	}),
	"disruption.proposed.v1-reboot": of(event.DisruptionProposed{
		Proposal: "p-1", Phase: event.Confirmed, Reason: "Unhealthy", Claims: []string{"default-abc"}, Method: "Repair", Reboot: true, Snapshot: ref("snapshots"), Decided: noon,
	}),
	"nodeclass.changed.v1-expressions": of(event.NodeClassChanged{
		Name: "default", UID: "uid-2", Generation: 3, Spec: json.RawMessage(`{"role":"node"}`), Expressions: true, ReservedENIs: 1, Asked: noon,
	}),
	"nodeclass.resolved.v1-hash": of(event.NodeClassResolved{
		Name: "default", UID: "uid-2", Generation: 3, Asked: noon, Hash: "4217", HashVersion: "v6",
	}),
	"nodeclass.resolved.v1-read": of(event.NodeClassResolved{
		Name: "default", UID: "uid-2", Generation: 3, Asked: noon, Read: noon.Add(time.Second), Hash: "4217", HashVersion: "v6",
	}),
	"nodeclass.resolved.v1-reservations": of(event.NodeClassResolved{
		Name: "default", UID: "uid-2", Generation: 3, Asked: noon, Hash: "4217",
		Reservations: []event.Reservation{{
			ID: "cr-1", InstanceType: "p5.48xlarge", Zone: "eu-west-1a", OwnerID: "111122223333", MatchCriteria: "targeted",
			Kind: "capacity-block", Interruptible: true, Expiring: true, Ends: noon,
		}},
		Problems: []event.Problem{
			{Condition: "SubnetsReady", Reason: "AWSAccessDenied", Message: "allow it", Unread: true},
			{Condition: "CapacityReservationsReady", Reason: "CapacityReservationsNotFound", Message: "none", Warning: true},
		},
	}),
	"terminate.requested.v1-intent": of(event.TerminateRequested{
		InstanceID: "i-0123456789abcdef0", Claim: "default-abc", Intent: "3f2a", Reason: "no NodeClaim stands for it",
	}),
	"nodeclass.ensure.v1-dry-runs": of(event.NodeClassEnsure{
		Name: "default", UID: "uid-2", Profile: "mine", Path: "/karpenter/", Asked: noon, Generation: 3,
		Tags: map[string]string{"kubernetes.io/cluster/prod": "owned"}, Class: json.RawMessage(`{"spec":{"instanceProfile":"mine"}}`),
	}),
	"nodeclass.ensure.v1-dedicated": of(event.NodeClassEnsure{
		Name: "default", UID: "uid-2", Profile: "mine", Path: "/karpenter/", Asked: noon, Generation: 3,
		Class: json.RawMessage(`{"spec":{"instanceProfile":"mine"}}`), Tenancy: "dedicated",
	}),
	"nodeclass.ensure.v1-type": of(event.NodeClassEnsure{
		Name: "default", UID: "uid-2", Profile: "mine", Path: "/karpenter/", Asked: noon, Generation: 3,
		Class: json.RawMessage(`{"spec":{"instanceProfile":"mine"}}`), InstanceType: "c6g.large",
	}),
	"nodeclass.ensured.v1-deletion": of(event.NodeClassEnsured{
		Name: "default", UID: "uid-2", Profile: "mine", Asked: noon, Deleted: true, Retired: true,
		Problem: &event.Problem{Condition: "InstanceProfileReady", Reason: "AWSAccessDenied", Message: "allow it", Unread: true, Warning: true},
		Invalid: &event.Problem{Condition: "ValidationSucceeded", Reason: event.DependenciesNotReady, Message: "throttled", Unread: true, Warning: true},
	}),
	"nodeclass.ensure.v1-former": of(event.NodeClassEnsure{
		Name: "default", UID: "uid-2", Profile: "mine", Path: "/karpenter/", Asked: noon, Former: "prod_1f",
		Tags: map[string]string{"kubernetes.io/cluster/prod": "owned"},
	}),
	"cluster.snapshot.v1-again": of(event.ClusterSnapshot{Taken: noon, Snapshot: ref("snapshots"), Again: true}),
	"disruption.proposed.v1-replacements": of(event.DisruptionProposed{
		Proposal: "9c1d", Phase: event.Confirmed, Reason: "Underutilized", Claims: []string{"default-abc"}, Method: "MultiNode", SavedPerHr: 0.5, Moved: 3,
		Plan: ref("plans"), Snapshot: ref("snapshots"), Decided: noon,
	}),
	"disruption.proposed.v1-recorded": of(event.DisruptionProposed{
		Proposal: "9c1d", Phase: event.Confirmed, Reason: "Empty", Claims: []string{"default-abc"}, Method: "Emptiness",
		Snapshot: ref("snapshots"), Decided: noon, ProposedAt: noon.Add(-20 * time.Second),
	}),
	"disruption.proposed.v1-terminate-first": of(event.DisruptionProposed{
		Proposal: "9c1d", Phase: event.Proposed, Reason: "Drifted", Claims: []string{"default-abc"}, Method: "Drift", Moved: 3,
		TerminateFirst: "no-reserved-capacity", Snapshot: ref("snapshots"), Decided: noon,
	}),
	"launch.settled.v1-places": of(event.LaunchSettled{
		Intent: "3f2a", Wanted: 1, Refusals: []event.Refusal{{
			Code: "InsufficientInstanceCapacity", Message: "none left", Blamed: []event.Offering{offering}, PlacementGroup: "pg-1", Reservation: "cr-1",
		}},
	}),
	"nodeclass.ensured.v1-dry-runs": of(event.NodeClassEnsured{
		Name: "default", UID: "uid-2", Profile: "mine", Asked: noon, Generation: 3, Validated: true,
		Invalid: &event.Problem{Condition: "ValidationSucceeded", Reason: event.RunInstancesAuthCheckFailed, Message: "denied"},
	}),
}
