package event_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/event"
)

// input is everything that an id is derived from.
type input struct {
	kind    string
	cluster event.Cluster
	key     []string
}

func (i input) id() string { return event.DeriveID(i.kind, i.cluster, i.key...) }

func (i input) equal(other input) bool {
	return i.kind == other.kind && i.cluster == other.cluster && slices.Equal(i.key, other.key)
}

func drawInput(t *rapid.T, name string) input {
	// Few characters, so that fields are often prefixes of each other.
	text := rapid.StringMatching("[ab]{0,3}")
	return input{
		kind:    text.Draw(t, name+" kind"),
		cluster: event.Cluster{Name: text.Draw(t, name+" cluster"), UID: text.Draw(t, name+" uid")},
		key:     rapid.SliceOfN(text, 0, 3).Draw(t, name+" key"),
	}
}

func TestIDsDifferWhereInputsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawInput(t, "a"), drawInput(t, "b")
		if a.equal(b) != (a.id() == b.id()) {
			t.Fatalf("%+v has id %s, and %+v has id %s", a, a.id(), b, b.id())
		}
		if n := len(a.id()); n != 32 {
			t.Fatalf("the id has %d characters: it must fit a ClientToken (64) and a label (63)", n)
		}
	})
}

// Moving the boundary between two fields gives another id: this is the purpose of the length before each field.
func TestBoundariesCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(1, 20, -1).Draw(t, "text")
		cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
		other := rapid.IntRange(0, len(text)).Draw(t, "other cut")
		a := event.DeriveID("kind", home, text[:cut], text[cut:])
		b := event.DeriveID("kind", home, text[:other], text[other:])
		if (cut == other) != (a == b) {
			t.Fatalf("%q cut at %d and at %d: %s and %s", text, cut, other, a, b)
		}
		if event.DeriveID("kind", home, text) == event.DeriveID("kind", home, text, "") {
			t.Fatal("an empty field counts for nothing")
		}
	})
}

func TestIDsAreOfTheBodyAlone(t *testing.T) {
	ids := map[string]event.Type{}
	for _, s := range samples {
		first, err := maker.New(noon, s.body, nil)
		if err != nil {
			t.Fatal(err)
		}
		later, err := event.Maker{Service: "another", Cluster: home}.New(noon.Add(90*time.Second), s.body, &event.Envelope{ID: "cause", ClusterUID: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if first.ID != later.ID {
			t.Errorf("%s: said again it is another event", first.Type)
		}
		if other, taken := ids[first.ID]; taken {
			t.Errorf("%s and %s share an id", first.Type, other)
		}
		ids[first.ID] = first.Type
	}
}

// The key contains exactly the fields that distinguish messages.
func TestKeys(t *testing.T) {
	settled := event.LaunchSettled{Intent: "i", Wanted: 2, Instances: []event.Launched{{InstanceID: "i-1"}, {InstanceID: "i-2"}}}
	turned := settled
	turned.Instances = []event.Launched{{InstanceID: "i-2"}, {InstanceID: "i-1"}}
	fuller := settled
	fuller.Wanted, fuller.Instances = 3, append(slices.Clone(settled.Instances), event.Launched{InstanceID: "i-3"})
	refused := event.LaunchSettled{Intent: "i", Wanted: 2, Refusals: []event.Refusal{{Code: "A"}, {Code: "B"}}}
	refusedTurned := event.LaunchSettled{Intent: "i", Wanted: 2, Refusals: []event.Refusal{{Code: "B"}, {Code: "A"}}}
	refusedSpent := refused
	refusedSpent.Spent = true
	gone := event.TerminateRequested{InstanceID: "i-1", ClaimUID: "u", Reason: "a"}
	for _, test := range []struct {
		name string
		a, b event.Body
		same bool
	}{
		{"instances in another order", settled, turned, true},
		{"a fuller answer", settled, fuller, false},
		{"refusals in another order", refused, refusedTurned, true},
		{"refused before and after the token was taken", refused, refusedSpent, false},
		{"the same end for another reason", gone, event.TerminateRequested{InstanceID: "i-1", ClaimUID: "u", Reason: "b"}, true},
		{"the same instance without its claim", gone, event.TerminateRequested{InstanceID: "i-1", Reason: "a"}, false},
		{"a batch of another outbox", samples[0].body, event.PodsUnschedulable{Outbox: "uid-9", Seq: 7, Batch: ref("batches")}, false},
		{"the next batch with the same body", samples[0].body, event.PodsUnschedulable{Outbox: "uid-1", Seq: 8, Batch: ref("batches")}, false},
	} {
		if same := slices.Equal(test.a.Key(), test.b.Key()); same != test.same {
			t.Errorf("%s: the keys %v and %v are the same: %t", test.name, test.a.Key(), test.b.Key(), same)
		}
	}
}
