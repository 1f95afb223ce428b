package outbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

const namespace = "kube-system"

var (
	batch = event.Ref{Kind: "batches", Digest: event.DigestOf([]byte("b")), Size: 1}
	other = event.Ref{Kind: "batches", Digest: event.DigestOf([]byte("o")), Size: 1}
	plan  = event.DigestOf([]byte("p"))
)

// The transitions to each state, as their writers make them.
var (
	idle     = outbox.Outbox{State: outbox.Idle}
	sent     = outbox.Outbox{Epoch: 1, Seq: 1, State: outbox.Sent, Batch: batch}
	applying = outbox.Outbox{Epoch: 1, Seq: 1, State: outbox.Applying, Batch: batch, Plan: plan, Claims: []string{"a", "b"}}
	done     = outbox.Outbox{Epoch: 1, Seq: 1, State: outbox.Done, Batch: batch, Plan: plan, Claims: []string{"a", "b"}}
)

func read(t *testing.T, client cluster.Client) outbox.Stored {
	t.Helper()
	held, err := outbox.Read(t.Context(), client, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// at returns a new outbox in a state.
func at(t *testing.T, client cluster.Client, state outbox.State) outbox.Stored {
	t.Helper()
	held := read(t, client)
	for _, next := range []outbox.Outbox{sent, applying, done} {
		if held.State == state {
			break
		}
		var err error
		if held, err = held.Swap(t.Context(), client, next); err != nil {
			t.Fatal(err)
		}
	}
	return held
}

func changed(o outbox.Outbox, change func(*outbox.Outbox)) outbox.Outbox {
	change(&o)
	return o
}

func TestTransitions(t *testing.T) {
	next := changed(sent, func(o *outbox.Outbox) { o.Seq = 2 })
	closed := outbox.Outbox{Epoch: 1, Seq: 2, State: outbox.Done}
	replacing := outbox.Outbox{Epoch: 1, Seq: 2, State: outbox.Applying, Plan: plan, Claims: []string{"c"}}
	all := []outbox.State{outbox.Idle, outbox.Sent, outbox.Applying, outbox.Done}
	for _, test := range []struct {
		name string
		next outbox.Outbox
		from []outbox.State
	}{
		{"the first batch", sent, []outbox.State{outbox.Idle}},
		{"the next batch", next, []outbox.State{outbox.Sent, outbox.Applying, outbox.Done}},
		{"a new leader's batch", changed(next, func(o *outbox.Outbox) { o.Epoch = 2 }), []outbox.State{outbox.Sent, outbox.Applying, outbox.Done}},
		{"a plan", applying, []outbox.State{outbox.Sent}},
		{"a plan without claims", changed(applying, func(o *outbox.Outbox) { o.Claims = nil }), []outbox.State{outbox.Sent}},
		{"the plan is done", done, []outbox.State{outbox.Applying}},
		{"the plan is done, and one claim was refused", changed(done, func(o *outbox.Outbox) { o.Claims, o.Refused = []string{"a"}, []string{"b"} }), []outbox.State{outbox.Applying}},
		{"closed without a plan", closed, []outbox.State{outbox.Sent, outbox.Applying}},

		{"replacements, before any batch", changed(replacing, func(o *outbox.Outbox) { o.Epoch, o.Seq = 0, 1 }), []outbox.State{outbox.Idle}},
		{"replacements", replacing, []outbox.State{outbox.Done}},

		{"replacements with the same number", changed(replacing, func(o *outbox.Outbox) { o.Seq = 1 }), nil},
		{"replacements that skip a number", changed(replacing, func(o *outbox.Outbox) { o.Seq = 3 }), nil},
		{"replacements without claims", changed(replacing, func(o *outbox.Outbox) { o.Claims = nil }), nil},
		{"replacements without a plan", changed(replacing, func(o *outbox.Outbox) { o.Plan = "" }), nil},
		{"replacements for a batch", changed(replacing, func(o *outbox.Outbox) { o.Batch = other }), nil},
		{"replacements of another epoch", changed(replacing, func(o *outbox.Outbox) { o.Epoch = 2 }), nil},
		{"replacements that start as done", changed(replacing, func(o *outbox.Outbox) { o.State = outbox.Done }), nil},
		{"back to idle", idle, nil},
		{"an unknown state", outbox.Outbox{Epoch: 1, Seq: 1, State: "lost"}, nil},
		{"no state", outbox.Outbox{Epoch: 1, Seq: 2}, nil},
		{"a batch that skips a number", changed(next, func(o *outbox.Outbox) { o.Seq = 3 }), nil},
		{"seq 0 again", changed(sent, func(o *outbox.Outbox) { o.Seq = 0 }), nil},
		{"a batch without a body", changed(next, func(o *outbox.Outbox) { o.Batch = event.Ref{} }), nil},
		{"a batch that has a plan already", changed(next, func(o *outbox.Outbox) { o.Plan = plan }), nil},
		{"a batch that has claims already", changed(next, func(o *outbox.Outbox) { o.Claims = []string{"a"} }), nil},
		{"a batch that has UIDs already", changed(next, func(o *outbox.Outbox) { o.UIDs = map[string]types.UID{"a": "1"} }), nil},
		{"a plan of the next batch", changed(applying, func(o *outbox.Outbox) { o.Seq = 2 }), nil},
		{"a plan of another body", changed(applying, func(o *outbox.Outbox) { o.Batch = other }), nil},
		{"admission without a plan", changed(applying, func(o *outbox.Outbox) { o.Plan = "" }), nil},
		{"another plan is done", changed(done, func(o *outbox.Outbox) { o.Plan = event.DigestOf([]byte("q")) }), nil},
		{"other claims are done", changed(done, func(o *outbox.Outbox) { o.Claims = []string{"a", "c"} }), nil},
		{"a batch that has refused claims already", changed(next, func(o *outbox.Outbox) { o.Refused = []string{"a"} }), nil},
		{"a plan with refused claims", changed(applying, func(o *outbox.Outbox) { o.Refused = []string{"a"} }), nil},
		{"closed without a plan, with claims", changed(closed, func(o *outbox.Outbox) { o.Claims = []string{"a"} }), nil},
	} {
		for _, from := range all {
			t.Run(test.name+" from "+string(from), func(t *testing.T) {
				server := memcluster.New(memcluster.Options{})
				held := at(t, server, from)
				_, err := held.Swap(t.Context(), server, test.next)
				want := fault.Bug
				for _, allowed := range test.from {
					if allowed == from {
						want = ""
					}
				}
				if got := fault.KindOf(err); got != want {
					t.Fatalf("%q (%v), want %q", got, err, want)
				}
				expected := held.Outbox
				if want == "" {
					expected = test.next
				}
				if diff := cmp.Diff(expected, read(t, server).Outbox); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A plan is admitted only if it is awaited, and admitted again only if it is the same
// plan.
func TestCheckPlan(t *testing.T) {
	planned := event.Ref{Kind: "plans", Digest: plan, Size: 1}
	another := event.Ref{Kind: "plans", Digest: event.DigestOf([]byte("q")), Size: 1}
	for _, test := range []struct {
		name  string
		state outbox.State
		edit  func(*event.PlanMade)
		says  string
	}{
		{"the outbox waits for a plan", outbox.Sent, func(*event.PlanMade) {}, ""},
		{"the plan is already admitted", outbox.Applying, func(*event.PlanMade) {}, ""},
		{"done", outbox.Done, func(*event.PlanMade) {}, ""},
		{"plan for another outbox", outbox.Sent, func(b *event.PlanMade) { b.Outbox = "x" }, "another outbox"},
		{"plan for an older batch", outbox.Sent, func(b *event.PlanMade) { b.Seq = 9 }, "the outbox is at batch 1"},
		{"plan for another batch body", outbox.Sent, func(b *event.PlanMade) { b.Batch = other }, "another batch body"},
		{"another plan is admitted", outbox.Applying, func(b *event.PlanMade) { b.Plan = another }, "another plan was admitted first"},
		{"another plan is done", outbox.Done, func(b *event.PlanMade) { b.Plan = another }, "another plan was admitted first"},
	} {
		t.Run(test.name, func(t *testing.T) {
			held := at(t, memcluster.New(memcluster.Options{}), test.state)
			b := event.PlanMade{Outbox: held.UID(), Seq: 1, Batch: batch, Plan: planned}
			test.edit(&b)
			err := held.CheckPlan(b)
			if test.says == "" && err != nil || test.says != "" && (!fault.Is(err, fault.Stale) || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("%v", err)
			}
		})
	}
}

// The epoch never decreases: an earlier leader cannot lead again with its old number.
func TestEpochNeverDecreases(t *testing.T) {
	server := memcluster.New(memcluster.Options{})
	held := at(t, server, outbox.Done)
	next := changed(sent, func(o *outbox.Outbox) { o.Seq, o.Epoch = 2, 0 })
	if _, err := held.Swap(t.Context(), server, next); !fault.Is(err, fault.Bug) {
		t.Errorf("got %v", err)
	}
}

// Of two writers that read the same state, exactly one succeeds.
func TestConcurrentSwap(t *testing.T) {
	server := memcluster.New(memcluster.Options{})
	at(t, server, outbox.Sent)
	watcher, lifecycle := server.ClientFor("watcher"), server.ClientFor("lifecycle")
	first, second := read(t, watcher), read(t, lifecycle)
	if _, err := second.Swap(t.Context(), lifecycle, applying); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Swap(t.Context(), watcher, changed(sent, func(o *outbox.Outbox) { o.Seq = 2 })); !fault.Is(err, fault.Conflict) {
		t.Fatalf("second swap: %v, want a conflict", err)
	}
	if _, err := second.Swap(t.Context(), lifecycle, applying); !fault.Is(err, fault.Conflict) {
		t.Errorf("repeated swap: %v, want a conflict", err)
	}
	if diff := cmp.Diff(applying, read(t, server).Outbox); diff != "" {
		t.Error(diff)
	}
}

// A swap with a lost response may have succeeded; the caller reads the state again.
func TestSwapResponseLost(t *testing.T) {
	server := memcluster.New(memcluster.Options{})
	held := at(t, server, outbox.Sent)
	server.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdate, Done: true, Times: 1})
	lifecycle := server.ClientFor("lifecycle")
	if _, err := held.Swap(t.Context(), lifecycle, applying); !fault.Is(err, fault.Unknown) {
		t.Fatalf("got %v", err)
	}
	if again := read(t, lifecycle); again.State != outbox.Applying || again.Plan != plan {
		t.Errorf("outbox = %+v", again.Outbox)
	}
}

// A recreated ConfigMap is another outbox: nothing of the old one matches it.
func TestRecreated(t *testing.T) {
	server := memcluster.New(memcluster.Options{})
	old := at(t, server, outbox.Sent)
	key := cluster.Key{Namespace: namespace, Name: outbox.Name}
	if err := server.Delete(t.Context(), cluster.ConfigMaps, key, ""); err != nil {
		t.Fatal(err)
	}
	fresh := read(t, server)
	if fresh.UID() == old.UID() || fresh.UID() == "" {
		t.Errorf("UIDs %q and %q, want two different ones", old.UID(), fresh.UID())
	}
	if diff := cmp.Diff(idle, fresh.Outbox); diff != "" {
		t.Error(diff)
	}
	if _, err := old.Swap(t.Context(), server, applying); !fault.Is(err, fault.Conflict, fault.Missing) {
		t.Errorf("swap of the old ConfigMap: %v", err)
	}
}

func TestConcurrentCreate(t *testing.T) {
	server := memcluster.New(memcluster.Options{})
	// The read returns that none exists, and another writer creates it first.
	server.InjectFaults(memcluster.Fault{Actor: "late", Verb: memcluster.VerbGet, As: fault.Missing, Times: 1})
	read(t, server)
	if _, err := outbox.Read(t.Context(), server.ClientFor("late"), namespace); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	if held := read(t, server.ClientFor("late")); held.State != outbox.Idle {
		t.Errorf("outbox = %+v", held.Outbox)
	}
}

func TestReadRejectsInvalidData(t *testing.T) {
	for _, text := range []string{"", "{", `{"state":"lost"}`, `{}`, `{"state":"idle","seq":"one"}`} {
		server := memcluster.New(memcluster.Options{})
		read(t, server)
		server.ChangeObject(cluster.ConfigMaps, cluster.Key{Namespace: namespace, Name: outbox.Name}, func(o cluster.Object) {
			o.(*corev1.ConfigMap).Data = map[string]string{"outbox.json": text}
		})
		_, err := outbox.Read(t.Context(), server, namespace)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.FindHint(err), "delete it") {
			t.Errorf("%q: %v, hint %q", text, err, fault.FindHint(err))
		}
	}
}

func TestAllowsLaunch(t *testing.T) {
	o := outbox.Outbox{State: outbox.Done, Claims: []string{"a", "b"}, UIDs: map[string]types.UID{"a": "1", "b": ""}}
	for _, c := range []struct {
		name   string
		change func(*outbox.Outbox)
		claim  string
		uid    types.UID
		want   bool
	}{
		{"created by the plan", nil, "a", "1", true},
		{"created again", nil, "a", "2", false},
		{"deleted before the plan was done", nil, "b", "2", false},
		{"of another plan", nil, "c", "1", false},
		{"a plan that is applying", func(o *outbox.Outbox) { o.State = outbox.Applying }, "a", "1", false},
		{"a plan that is applying and creates all its NodeClaims", func(o *outbox.Outbox) { o.State, o.UIDs = outbox.Applying, nil }, "a", "1", false},
		{"another plan's NodeClaim in an outbox of an earlier version", func(o *outbox.Outbox) { o.UIDs = nil }, "c", "1", false},
		{"an outbox of an earlier version", func(o *outbox.Outbox) { o.UIDs = nil }, "a", "2", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := o
			if c.change != nil {
				c.change(&o)
			}
			if got := o.AllowsLaunch(c.claim, c.uid); got != c.want {
				t.Errorf("AllowsLaunch(%s, %s) = %v", c.claim, c.uid, got)
			}
		})
	}
}

func TestListsClaim(t *testing.T) {
	if !done.ListsClaim("b") || done.ListsClaim("c") || idle.ListsClaim("") {
		t.Error("ListsClaim is wrong for done or idle")
	}
}

func TestReadFails(t *testing.T) {
	server := memcluster.New(memcluster.Options{})
	read(t, server)
	server.InjectFaults(memcluster.Fault{Verb: memcluster.VerbGet, As: fault.Retry})
	if _, err := outbox.Read(t.Context(), server.ClientFor("watcher"), namespace); !fault.Is(err, fault.Retry) {
		t.Errorf("Read during an outage = %v", err)
	}
}

// A time that JSON cannot express is not written.
func TestSwapRefusesInvalidTime(t *testing.T) {
	server := memcluster.New(memcluster.Options{})
	next := changed(sent, func(o *outbox.Outbox) { o.Since = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) })
	if _, err := read(t, server).Swap(t.Context(), server, next); !fault.Is(err, fault.Bug) {
		t.Errorf("Swap = %v, want a bug", err)
	}
	if diff := cmp.Diff(idle, read(t, server).Outbox); diff != "" {
		t.Error(diff)
	}
}

// A cached copy has the version of the outbox if it is the same ConfigMap, unchanged.
func TestIsSameVersion(t *testing.T) {
	server := memcluster.New(memcluster.Options{})
	held := read(t, server)
	cached, err := cluster.Get[*corev1.ConfigMap](t.Context(), server, cluster.ConfigMaps, cluster.Key{Namespace: namespace, Name: outbox.Name})
	if err != nil {
		t.Fatal(err)
	}
	recreated := cached.DeepCopy()
	recreated.UID = "another"
	older := cached.DeepCopy()
	older.ResourceVersion = "0"
	for name, c := range map[string]struct {
		held   outbox.Stored
		copied *corev1.ConfigMap
		want   bool
	}{
		"unchanged":       {held, cached, true},
		"recreated":       {held, recreated, false},
		"older":           {held, older, false},
		"not cached":      {held, nil, false},
		"not read":        {outbox.Stored{}, cached, false},
		"neither is read": {outbox.Stored{}, nil, false},
	} {
		if got := c.held.IsSameVersion(c.copied); got != c.want {
			t.Errorf("%s: IsSameVersion = %t, want %t", name, got, c.want)
		}
	}
}

// A span has both of its ends.
func TestSpanContains(t *testing.T) {
	for class, want := range map[uint64]bool{2: false, 3: true, 4: true, 5: true, 6: false} {
		if got := (outbox.Span{From: 3, To: 5}).Contains(class); got != want {
			t.Errorf("Contains(%d) = %t, want %t", class, got, want)
		}
	}
}
