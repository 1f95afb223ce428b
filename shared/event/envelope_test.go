package event_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

func TestMakerInherits(t *testing.T) {
	first, err := maker.New(noon, samples[0].body, nil)
	if err != nil {
		t.Fatal(err)
	}
	if first.Correlation != first.ID || first.Causation != "" {
		t.Errorf("a story begins with correlation %q and causation %q, and its id is %s", first.Correlation, first.Causation, first.ID)
	}
	first.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	outside := event.Maker{Service: "planner", Cluster: event.Cluster{Name: "prod"}}
	second, err := outside.New(noon, samples[5].body, &first)
	if err != nil {
		t.Fatal(err)
	}
	third, err := maker.New(noon, samples[7].body, &second)
	if err != nil {
		t.Fatal(err)
	}
	if second.Correlation != first.ID || third.Correlation != first.ID {
		t.Errorf("the correlations are %s and %s, want %s", second.Correlation, third.Correlation, first.ID)
	}
	if second.Causation != first.ID || third.Causation != second.ID {
		t.Errorf("the causes are %s and %s, want %s and %s", second.Causation, third.Causation, first.ID, second.ID)
	}
	if third.Traceparent != first.Traceparent {
		t.Errorf("the trace broke: %q", third.Traceparent)
	}
	if second.ClusterUID != home.UID {
		t.Errorf("the cluster's UID was not learned from the cause: %q", second.ClusterUID)
	}
	alone, err := outside.New(noon, samples[5].body, nil)
	if err != nil {
		t.Fatal(err)
	}
	if alone.ID != second.ID {
		t.Error("the id depends on which message happened to be the cause")
	}
	if second.Source != "joist/planner" || second.Subject != "batch/7" || second.Dataref != ref("plans").Key() {
		t.Errorf("source %q, subject %q, dataref %q", second.Source, second.Subject, second.Dataref)
	}
}

// The trace id is the same from New and NewHead.
func TestStory(t *testing.T) {
	for _, sample := range samples {
		made, err := maker.New(noon, sample.body, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := maker.NewHead(noon, sample.body).Correlation; got != made.Correlation {
			t.Errorf("%s: %s instead of %s", made.Type, got, made.Correlation)
		}
	}
}

// TestExpiry checks that a message expires exactly after its type's TTL.
func TestExpiry(t *testing.T) {
	e, err := maker.New(noon, event.TerminateRequested{InstanceID: "i-1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := e.Type.Spec()
	if err != nil {
		t.Fatal(err)
	}
	if want := noon.Add(spec.TTL); !e.Expires.Equal(want) || e.HasExpired(want.Add(-1)) || !e.HasExpired(want) {
		t.Errorf("it expires at %s, want exactly %s", e.Expires, want)
	}
}

func TestMakerRefusesWhatNobodyCouldObey(t *testing.T) {
	for name, body := range map[string]event.Body{
		"invalid":     event.TerminateRequested{},
		"no outcome":  event.LaunchSettled{Intent: "i", Wanted: 1},
		"all blamed":  event.LaunchSettled{Intent: "i", Wanted: 1, Refusals: []event.Refusal{{Code: "x", Blamed: []event.Offering{{Zone: "a"}, {}}}}},
		"too large":   event.TerminateRequested{InstanceID: "i-1", Reason: strings.Repeat("x", 5<<10)},
		"bad tick":    event.Tick{Want: "coffee", Due: noon},
		"no document": event.PlanMade{Outbox: "u", Seq: 1},
	} {
		if _, err := maker.New(noon, body, nil); !fault.Is(err, fault.Bug) {
			t.Errorf("%s: %v, want a bug", name, err)
		}
	}
}

func TestClusterAgrees(t *testing.T) {
	for _, test := range []struct {
		a, b event.Cluster
		want bool
	}{
		{event.Cluster{Name: "a", UID: "1"}, event.Cluster{Name: "a", UID: "1"}, true},
		{event.Cluster{Name: "a", UID: "1"}, event.Cluster{Name: "a"}, true},
		{event.Cluster{Name: "a"}, event.Cluster{Name: "a"}, true},
		{event.Cluster{Name: "a", UID: "1"}, event.Cluster{Name: "a", UID: "2"}, false},
		{event.Cluster{Name: "a", UID: "1"}, event.Cluster{Name: "b", UID: "1"}, false},
		{event.Cluster{Name: "a"}, event.Cluster{Name: "b"}, false},
	} {
		if test.a.Matches(test.b) != test.want || test.b.Matches(test.a) != test.want {
			t.Errorf("%v and %v agree: want %t both ways", test.a, test.b, test.want)
		}
	}
}

// The table of types is consistent: every type has consumers, and every TTL allows delivery.
func TestSpecs(t *testing.T) {
	facts := 0
	for _, spec := range event.Specs {
		if len(spec.Producers) != 1 || len(spec.Consumers) == 0 {
			t.Errorf("%s: produced by %v, consumed by %v", spec.Type, spec.Producers, spec.Consumers)
		}
		if spec.TTL < event.MinTTL || spec.MaxData <= 0 || spec.MaxData > event.MaxEnvelope*9/10 {
			t.Errorf("%s: lives %s, %d bytes", spec.Type, spec.TTL, spec.MaxData)
		}
		got, err := spec.Type.Spec()
		if err != nil || got.Type != spec.Type {
			t.Errorf("%s is not found: %v", spec.Type, err)
		}
		if spec.IsFact() {
			facts++
			if slices.Contains(spec.Producers, "lifecycle") {
				t.Errorf("%s: lifecycle says commands alone", spec.Type)
			}
		}
	}
	if facts != 11 {
		t.Errorf("%d types are facts, want 11", facts)
	}
}

func TestReferences(t *testing.T) {
	good := ref("batches")
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if want := "batches/" + string(good.Digest); good.Key() != want || good.Digest.ShortText() != string(good.Digest[:12]) || event.Digest("abc").ShortText() != "abc" {
		t.Errorf("key %q, short %q", good.Key(), good.Digest.ShortText())
	}
	if good.IsZero() || !(event.Ref{}).IsZero() {
		t.Error("IsZero is wrong")
	}
	for name, spoil := range map[string]func(*event.Ref){
		"no kind":      func(r *event.Ref) { r.Kind = "" },
		"a path":       func(r *event.Ref) { r.Kind = "../batches" },
		"upper case":   func(r *event.Ref) { r.Digest = event.Digest(strings.ToUpper(string(r.Digest))) },
		"short digest": func(r *event.Ref) { r.Digest = r.Digest[1:] },
		"no digest":    func(r *event.Ref) { r.Digest = "" },
		"no size":      func(r *event.Ref) { r.Size = 0 },
	} {
		bad := good
		spoil(&bad)
		if err := bad.Validate(); !fault.Is(err, fault.Poison) {
			t.Errorf("%s: %v, want poison", name, err)
		}
	}
}
