package event_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/shared/event"
)

// A newer producer may send a value that this version does not know. Where the table has false, the consumer accepts
// it, and a new value needs no new version of the type; where it has true, the value is refused, and a new one needs a
// new major version.
func TestUnknownValues(t *testing.T) {
	const unknown = "of-the-next-version"
	problem := &event.Problem{Condition: unknown, Reason: unknown, Message: "new"}
	for name, c := range map[string]struct {
		body    event.Body
		refused bool
	}{
		"want of a tick":        {event.Tick{Want: unknown, Due: noon}, true},
		"phase of a proposal":   {event.DisruptionProposed{Proposal: "p", Claims: []string{"a"}, Phase: unknown, Snapshot: ref(event.SnapshotKind)}, true},
		"tenancy of a class":    {event.NodeClassEnsure{Name: "default", UID: "uid", Profile: "p", Tenancy: unknown}, true},
		"kind of a document":    {event.CatalogRefreshed{Catalogue: ref(unknown)}, true},
		"method and reason":     {event.DisruptionProposed{Proposal: "p", Claims: []string{"a"}, Phase: event.Proposed, Method: unknown, Reason: unknown, Snapshot: ref(event.SnapshotKind)}, false},
		"rule of kept nodes":    {event.NodesKept{Kept: []event.Kept{{Rule: unknown, Claims: []string{"a"}}}, Snapshot: ref(event.SnapshotKind)}, false},
		"code of a refusal":     {event.LaunchSettled{Intent: "i", Wanted: 1, Refusals: []event.Refusal{{Code: unknown}}}, false},
		"condition and reason":  {event.NodeClassEnsured{Name: "default", UID: "uid", Profile: "p", Problem: problem}, false},
		"kind of a reservation": {event.NodeClassResolved{Name: "default", UID: "uid", Reservations: []event.Reservation{{ID: "cr-1", Kind: unknown}}}, false},
		"kind of a notice":      {event.NodeNoticed{Kind: unknown, InstanceID: "i-1", Noticed: noon}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.body.Validate(); (err != nil) != c.refused {
				t.Errorf("Validate returns %v; refused should be %v", err, c.refused)
			}
		})
	}
}
