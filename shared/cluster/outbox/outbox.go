// Package outbox is the fence between the watcher and lifecycle: one ConfigMap
// that names the batch in flight. It is changed only by compare-and-swap.
//
//	idle ──watcher──▶ sent ──lifecycle──▶ applying ──lifecycle──▶ done
//	 │                 ▲                   ▲  │                    │ │
//	 │                 └──────watcher, seq+1──┴────────────────────┘ │
//	 └───────────────────────lifecycle, seq+1────────────────────────┘
//
// The lowest arrow is for plans that replace nodes. They answer no batch, so lifecycle
// gives them the next number while no batch is in flight.
//
// The invariants:
//
//   - Every swap is at the resourceVersion that was read, so one of two concurrent
//     swaps fails. Leases avoid contention; safety depends on the swap.
//   - A plan is admitted once. The swap to applying with the plan's digest permits the
//     creation of its NodeClaims, and the swap to done permits their launch.
//   - Seq never decreases, and a plan with another seq is refused.
package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Name is the ConfigMap's name, in Joist's namespace.
const Name = "joist-outbox"

// dataKey is the one entry of the ConfigMap.
const dataKey = "outbox.json"

// State is the state of the batch in flight.
type State string

// The states.
const (
	Idle     State = "idle"
	Sent     State = "sent"
	Applying State = "applying"
	Done     State = "done"
)

// Outbox is the content of the ConfigMap.
type Outbox struct {
	// Epoch counts the watchers that have led.
	Epoch uint64 `json:"epoch"`
	// Seq numbers the batches; 0 means that there was none yet.
	Seq   uint64    `json:"seq"`
	State State     `json:"state"`
	Batch event.Ref `json:"batch,omitzero"`
	// Plan is the digest of the admitted plan.
	Plan event.Digest `json:"plan,omitempty"`
	// Claims are the NodeClaims that the plan may create while it is applying, and the
	// existing ones once it is done.
	Claims []string `json:"claims,omitempty"`
	// UIDs has the UID of each NodeClaim in Claims that the plan did not have to create, and of all of them once the plan is
	// done. The UID is empty if the NodeClaim was deleted before. A replica that pauses and resumes later may create a
	// NodeClaim again that was launched and removed: it has the same name and another UID.
	UIDs map[string]types.UID `json:"uids,omitempty"`
	// Refused are the NodeClaims of a done plan that do not exist, because the API server
	// refused a NodeClaim of the same intent with a permanent error.
	Refused []string `json:"refused,omitempty"`
	// Since is when the state was entered. No decision depends on it.
	Since time.Time `json:"since,omitzero"`
	// Bisection is the search for pods whose batches get no plan; usually nil.
	Bisection *Bisection `json:"bisection,omitempty"`
}

// Stored is an outbox as it was read; a swap compares against it.
type Stored struct {
	Outbox
	object *corev1.ConfigMap
}

// UID is the UID of the ConfigMap. A ConfigMap that is deleted and created again is
// another outbox, and plans of the old one do not match it.
func (h Stored) UID() string { return string(h.object.UID) }

// IsSameVersion reports whether the outbox has the version of a copy, such as a cache's.
func (h Stored) IsSameVersion(copied *corev1.ConfigMap) bool {
	return h.object != nil && copied != nil && h.object.UID == copied.UID && h.object.ResourceVersion == copied.ResourceVersion
}

// Read reads the outbox, and creates it if it does not exist.
func Read(ctx context.Context, client cluster.Client, namespace string) (Stored, error) {
	key := cluster.Key{Namespace: namespace, Name: Name}
	object, err := cluster.Get[*corev1.ConfigMap](ctx, client, cluster.ConfigMaps, key)
	if fault.Is(err, fault.Missing) {
		return createOutbox(ctx, client, key)
	}
	if err != nil {
		return Stored{}, fmt.Errorf("reading the outbox %s: %w", key, err)
	}
	return Parse(object)
}

func createOutbox(ctx context.Context, client cluster.Client, key cluster.Key) (Stored, error) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	text, err := json.Marshal(Outbox{State: Idle})
	if err != nil {
		return Stored{}, fault.E("encoding the outbox", fault.Bug, err)
	}
	object.Data = map[string]string{dataKey: string(text)}
	stored, err := client.Create(ctx, object)
	if err != nil {
		return Stored{}, fmt.Errorf("creating the outbox %s: %w", key, err)
	}
	return Parse(stored.(*corev1.ConfigMap))
}

// Parse decodes an outbox from a ConfigMap, such as one of a cache. To swap it, call Read.
func Parse(object *corev1.ConfigMap) (Stored, error) {
	h := Stored{object: object}
	if err := json.Unmarshal([]byte(object.Data[dataKey]), &h.Outbox); err != nil {
		return Stored{}, fault.E("reading the outbox", fault.Invalid, err).
			WithHint("ConfigMap %s/%s was edited by hand: delete it, and the watcher creates a new one", object.Namespace, object.Name)
	}
	switch h.State {
	case Idle, Sent, Applying, Done:
		return h, nil
	default:
		return Stored{}, fault.F("reading the outbox", fault.Invalid, "unknown state %q (use idle, sent, applying or done)", h.State).
			WithHint("ConfigMap %s/%s was edited by hand: delete it, and the watcher creates a new one", object.Namespace, object.Name)
	}
}

// CheckPlan returns fault.Stale for a plan that does not answer the batch in flight.
func (h Stored) CheckPlan(b event.PlanMade) error {
	stale := func(format string, args ...any) error {
		return fault.F(fmt.Sprintf("admitting a plan of batch %d", b.Seq), fault.Stale, format, args...)
	}
	switch {
	case h.UID() != b.Outbox:
		return stale("the plan is for another outbox")
	case h.Seq != b.Seq:
		return stale("the outbox is at batch %d", h.Seq)
	case h.State == Sent && h.Batch != b.Batch:
		return stale("the plan answers another batch body")
	case h.State != Sent && h.Plan != b.Plan.Digest:
		return stale("another plan was admitted first")
	}
	return nil
}

// Swap writes next if the outbox has not changed since it was read, and returns
// fault.Conflict otherwise. A transition that the state machine does not have is fault.Bug.
func (h Stored) Swap(ctx context.Context, client cluster.Client, next Outbox) (Stored, error) {
	if !h.allowsTransition(next) {
		return Stored{}, fault.F("swapping the outbox", fault.Bug, "invalid transition from %s %d to %s %d", h.State, h.Seq, next.State, next.Seq)
	}
	text, err := json.Marshal(next)
	if err != nil {
		return Stored{}, fault.E("encoding the outbox", fault.Bug, err)
	}
	object := h.object.DeepCopy()
	object.Data = map[string]string{dataKey: string(text)}
	stored, err := client.Update(ctx, object)
	if err != nil {
		return Stored{}, fmt.Errorf("swapping the outbox to %s %d: %w", next.State, next.Seq, err)
	}
	return Parse(stored.(*corev1.ConfigMap))
}

// allowsTransition is the state machine.
func (h Stored) allowsTransition(next Outbox) bool {
	if next.Epoch < h.Epoch {
		return false
	}
	switch next.State {
	case Sent:
		return next.Seq == h.Seq+1 && !next.Batch.IsZero() && next.hasNoPlan()
	case Applying:
		return h.admitsPlan(next) || h.admitsReplacement(next)
	case Done:
		return h.closesBatch(next) || h.finishesPlan(next)
	case Idle:
		return false
	default:
		return false
	}
}

// admitsPlan reports whether next admits a plan that answers the batch in flight.
func (h Stored) admitsPlan(next Outbox) bool {
	return h.State == Sent && next.Seq == h.Seq && next.Batch == h.Batch && next.Plan != "" && len(next.Refused) == 0
}

// admitsReplacement reports whether next admits a plan that answers no batch: it has the
// next number, creates NodeClaims, and no batch is in flight.
func (h Stored) admitsReplacement(next Outbox) bool {
	return h.IsFree() && next.Epoch == h.Epoch && next.Seq == h.Seq+1 && next.Batch.IsZero() && next.Plan != "" && len(next.Claims) > 0
}

// closesBatch reports whether next gives up the batch in flight because no pod is pending.
func (h Stored) closesBatch(next Outbox) bool {
	return (h.State == Sent || h.State == Applying) && next.Seq == h.Seq+1 && next.hasNoPlan()
}

// finishesPlan reports whether next completes the admitted plan, with only NodeClaims
// that it was admitted with.
func (h Stored) finishesPlan(next Outbox) bool {
	other := func(claim string) bool { return !h.ListsClaim(claim) }
	return h.State == Applying && next.Seq == h.Seq && next.Plan == h.Plan && !slices.ContainsFunc(next.Claims, other)
}

// hasNoPlan reports whether no plan is admitted.
func (o Outbox) hasNoPlan() bool {
	return o.Plan == "" && len(o.Claims) == 0 && len(o.UIDs) == 0 && len(o.Refused) == 0
}

// IsFree reports whether no batch is in flight.
func (o Outbox) IsFree() bool { return o.State == Idle || o.State == Done }

// AllowsLaunch reports whether the plan is done and the NodeClaim is one that it created, not only one with the
// same name. An outbox without UIDs is of an earlier version.
func (o Outbox) AllowsLaunch(name string, uid types.UID) bool {
	if len(o.UIDs) == 0 {
		return o.State == Done && o.ListsClaim(name)
	}
	recorded, listed := o.UIDs[name]
	return o.State == Done && listed && recorded == uid
}

// ListsClaim reports whether the admitted plan names the NodeClaim.
func (o Outbox) ListsClaim(claim string) bool { return slices.Contains(o.Claims, claim) }
