// Package outbox is the fence between the watcher and lifecycle: one ConfigMap
// that says which batch is in flight, changed by compare-and-swap only.
//
//	idle ──watcher──▶ sent ──lifecycle──▶ applying ──lifecycle──▶ done
//	 │                 ▲                   ▲  │                    │ │
//	 │                 └──────watcher, seq+1──┴────────────────────┘ │
//	 └───────────────────────lifecycle, seq+1────────────────────────┘
//
// The lowest way is that of the replacements of nodes: nobody planned a batch for
// them, so their plan takes a number of its own while no batch is in flight.
//
// The invariants:
//
//   - Every swap is at the resourceVersion that was read, so of two that read
//     the same state one wins. Leases avoid contention; safety rests here.
//   - A plan passes once: only the swap to applying with its digest lets its
//     claims be created, and only done lets them be launched.
//   - Seq never goes back, and a plan of another seq is refused.
package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Name is the ConfigMap's name, in Joist's namespace.
const Name = "joist-outbox"

// dataKey is the one entry of the ConfigMap.
const dataKey = "outbox.json"

// State is how far the batch in flight has come.
type State string

// The states.
const (
	Idle     State = "idle"
	Sent     State = "sent"
	Applying State = "applying"
	Done     State = "done"
)

// Outbox is what the ConfigMap says.
type Outbox struct {
	// Epoch counts the watchers that have led.
	Epoch uint64 `json:"epoch"`
	// Seq numbers the batches; 0 means that there was none yet.
	Seq   uint64    `json:"seq"`
	State State     `json:"state"`
	Batch event.Ref `json:"batch,omitzero"`
	// Plan is the digest of the plan that passed.
	Plan event.Digest `json:"plan,omitempty"`
	// Claims are the names that the plan may create, once it is applying, and
	// that exist, once it is done.
	Claims []string `json:"claims,omitempty"`
	// Refused are the names that do not exist once the plan of the last batch is done,
	// because the API server refused one of the claims of their intent for good.
	Refused []string `json:"refused,omitempty"`
	// Since is when the state was entered, for people; no decision reads it.
	Since time.Time `json:"since,omitzero"`
	// Hunt is the search for pods that no batch survives; mostly there is none.
	Hunt *Hunt `json:"hunt,omitempty"`
}

// Held is an outbox as read: what a swap compares against.
type Held struct {
	Outbox
	object *corev1.ConfigMap
}

// UID names this outbox for good: deleting the ConfigMap makes another, and no
// id of the old one can meet one of the new.
func (h Held) UID() string { return string(h.object.UID) }

// Is reports whether the outbox is still as it was read, as far as a copy of it
// tells: a cache's, say.
func (h Held) Is(copied *corev1.ConfigMap) bool {
	return h.object != nil && copied != nil && h.object.UID == copied.UID && h.object.ResourceVersion == copied.ResourceVersion
}

// Read reads the outbox and creates it where there is none.
func Read(ctx context.Context, client cluster.Client, namespace string) (Held, error) {
	key := cluster.Key{Namespace: namespace, Name: Name}
	object, err := cluster.Get[*corev1.ConfigMap](ctx, client, cluster.ConfigMaps, key)
	if fault.Is(err, fault.Missing) {
		return create(ctx, client, key)
	}
	if err != nil {
		return Held{}, fmt.Errorf("reading the outbox %s: %w", key, err)
	}
	return Parse(object)
}

func create(ctx context.Context, client cluster.Client, key cluster.Key) (Held, error) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	text, err := json.Marshal(Outbox{State: Idle})
	if err != nil {
		return Held{}, fault.E("encoding the outbox", fault.Bug, err)
	}
	object.Data = map[string]string{dataKey: string(text)}
	stored, err := client.Create(ctx, object)
	if err != nil {
		return Held{}, fmt.Errorf("creating the outbox %s: %w", key, err)
	}
	return Parse(stored.(*corev1.ConfigMap))
}

// Parse reads an outbox that somebody else has got: to look at, for who swaps reads it
// anew.
func Parse(object *corev1.ConfigMap) (Held, error) {
	h := Held{object: object}
	if err := json.Unmarshal([]byte(object.Data[dataKey]), &h.Outbox); err != nil {
		return Held{}, fault.E("reading the outbox", fault.Invalid, err).
			WithHint("ConfigMap %s/%s was edited by hand: delete it, and the watcher makes a new one", object.Namespace, object.Name)
	}
	switch h.State {
	case Idle, Sent, Applying, Done:
		return h, nil
	default:
		return Held{}, fault.F("reading the outbox", fault.Invalid, "there is no state %q", h.State).
			WithHint("ConfigMap %s/%s was edited by hand: delete it, and the watcher makes a new one", object.Namespace, object.Name)
	}
}

// Fits refuses a plan that the outbox does not wait for: fault.Stale.
func (h Held) Fits(b event.PlanMade) error {
	stale := func(format string, args ...any) error {
		return fault.F(fmt.Sprintf("admitting a plan of batch %d", b.Seq), fault.Stale, format, args...)
	}
	switch {
	case h.UID() != b.Outbox:
		return stale("it is of another outbox")
	case h.Seq != b.Seq:
		return stale("the outbox is at %d", h.Seq)
	case h.State == Sent && h.Batch != b.Batch:
		return stale("it answers another batch body")
	case h.State != Sent && h.Plan != b.Plan.Digest:
		return stale("another plan passed first")
	}
	return nil
}

// Swap writes next if nothing has changed since h was read; fault.Conflict
// otherwise. A step that the state machine does not know is a bug.
func (h Held) Swap(ctx context.Context, client cluster.Client, next Outbox) (Held, error) {
	if !h.allows(next) {
		return Held{}, fault.F("swapping the outbox", fault.Bug, "no way from %s %d to %s %d", h.State, h.Seq, next.State, next.Seq)
	}
	text, err := json.Marshal(next)
	if err != nil {
		return Held{}, fault.E("encoding the outbox", fault.Bug, err)
	}
	object := h.object.DeepCopy()
	object.Data = map[string]string{dataKey: string(text)}
	stored, err := client.Update(ctx, object)
	if err != nil {
		return Held{}, fmt.Errorf("swapping the outbox to %s %d: %w", next.State, next.Seq, err)
	}
	return Parse(stored.(*corev1.ConfigMap))
}

// allows draws the state machine.
func (h Held) allows(next Outbox) bool {
	if next.Epoch < h.Epoch {
		return false
	}
	switch next.State {
	case Sent:
		return next.Seq == h.Seq+1 && !next.Batch.IsZero() && next.unplanned()
	case Applying:
		return h.passes(next) || h.replaces(next)
	case Done:
		return h.closes(next) || h.finishes(next)
	case Idle:
		return false
	default:
		return false
	}
}

// passes reports whether a plan answers the batch in flight.
func (h Held) passes(next Outbox) bool {
	return h.State == Sent && next.Seq == h.Seq && next.Batch == h.Batch && next.Plan != "" && len(next.Refused) == 0
}

// replaces reports whether a plan that answers no batch takes the next number, with
// nothing in flight. It creates claims, or it need not pass here.
func (h Held) replaces(next Outbox) bool {
	return h.Free() && next.Epoch == h.Epoch && next.Seq == h.Seq+1 && next.Batch.IsZero() && next.Plan != "" && len(next.Claims) > 0
}

// closes reports whether a batch in flight is given up because no pod waits.
func (h Held) closes(next Outbox) bool {
	return (h.State == Sent || h.State == Applying) && next.Seq == h.Seq+1 && next.unplanned()
}

// finishes reports whether the plan that passed is done, with no other claims than it
// passed with.
func (h Held) finishes(next Outbox) bool {
	other := func(claim string) bool { return !h.Lists(claim) }
	return h.State == Applying && next.Seq == h.Seq && next.Plan == h.Plan && !slices.ContainsFunc(next.Claims, other)
}

// unplanned reports that no plan has passed yet.
func (o Outbox) unplanned() bool { return o.Plan == "" && len(o.Claims) == 0 && len(o.Refused) == 0 }

// Free reports that no plan is in flight: what exists is what was decided.
func (o Outbox) Free() bool { return o.State == Idle || o.State == Done }

// Lists reports whether the plan that passed names the claim.
func (o Outbox) Lists(claim string) bool { return slices.Contains(o.Claims, claim) }
