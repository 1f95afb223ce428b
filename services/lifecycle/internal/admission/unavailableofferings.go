package admission

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// MaxUnavailableBytes limits the offerings in the ConfigMap, as JSON: about 2,000. Every batch
// contains them, and a ConfigMap holds 1 MiB.
const MaxUnavailableBytes = 256 << 10

// RecordUnavailable records the offerings that the refusals report as unavailable since reported, the time of their message.
// A message that is handled again later does not extend the time for which they are unavailable.
func RecordUnavailable(ctx context.Context, client cluster.Client, namespace string, refusals []event.Refusal, reported, now time.Time) error {
	until := EndUnavailable(reported, now)
	var fresh []planning.Unavailable
	for _, r := range refusals {
		for _, o := range r.Blamed {
			fresh = append(fresh, planning.Unavailable{
				Offering: o, Subnet: r.Subnet, PlacementGroup: r.PlacementGroup, Reservation: r.Reservation, Until: until, Reason: r.Code,
			})
		}
	}
	return AddUnavailable(ctx, client, namespace, fresh, now)
}

// EndUnavailable returns when an offering that a message of the time reported names is available again. A time in the future counts as now.
func EndUnavailable(reported, now time.Time) time.Time {
	if reported.After(now) {
		reported = now
	}
	return reported.Add(planning.UnavailableTTL).UTC()
}

// AddUnavailable merges offerings into the ConfigMap and drops expired ones.
func AddUnavailable(ctx context.Context, client cluster.Client, namespace string, fresh []planning.Unavailable, now time.Time) error {
	if len(fresh) == 0 {
		return nil
	}
	return updateUnavailable(ctx, client, namespace, func(old []planning.Unavailable) ([]planning.Unavailable, bool) {
		return mergeUnavailable(old, fresh, now), true
	})
}

// pauseMemory is how long after a pause a NodePool's refused launches still count as in a row with the
// next one, unless a launch succeeds.
const pauseMemory = 10 * time.Minute

// PauseNodePool pauses the launches of a NodePool after one was refused. paused has the NodePool, its
// LaunchSpecKey and the reason. A refusal during a pause does not extend it: that launch was requested
// before, or its message is delivered again.
func PauseNodePool(ctx context.Context, client cluster.Client, namespace string, paused planning.Unavailable, now time.Time) error {
	return updateUnavailable(ctx, client, namespace, func(old []planning.Unavailable) ([]planning.Unavailable, bool) {
		rest := withoutPause(old, paused.NodePool)
		isLast := func(u planning.Unavailable) bool {
			return u.NodePool == paused.NodePool && u.SpecKey == paused.SpecKey && isNeeded(u, now)
		}
		if at := slices.IndexFunc(old, isLast); at >= 0 {
			if old[at].Until.After(now) {
				return old, false
			}
			paused.Refused = old[at].Refused
		}
		paused.Refused++
		paused.Until = now.Add(planning.LaunchPause(paused.Refused)).UTC()
		return mergeUnavailable(rest, []planning.Unavailable{paused}, now), true
	})
}

// ResumeNodePool ends the pause of a NodePool after a launch succeeded.
func ResumeNodePool(ctx context.Context, client cluster.Client, namespace, nodePool string, now time.Time) error {
	return updateUnavailable(ctx, client, namespace, func(old []planning.Unavailable) ([]planning.Unavailable, bool) {
		rest := withoutPause(old, nodePool)
		return mergeUnavailable(rest, nil, now), len(rest) < len(old)
	})
}

// withoutPause returns the list without the pause of a NodePool.
func withoutPause(list []planning.Unavailable, nodePool string) []planning.Unavailable {
	return slices.DeleteFunc(slices.Clone(list), func(u planning.Unavailable) bool { return u.NodePool == nodePool })
}

// updateUnavailable changes the list in the ConfigMap. It writes nothing if change returns false.
func updateUnavailable(ctx context.Context, client cluster.Client, namespace string, change func([]planning.Unavailable) ([]planning.Unavailable, bool)) error {
	key := cluster.Key{Namespace: namespace, Name: planning.UnavailableConfigMapName}
	object, err := cluster.Get[*corev1.ConfigMap](ctx, client, cluster.ConfigMaps, key)
	missing := fault.Is(err, fault.Missing)
	if err != nil && !missing {
		return fmt.Errorf("reading the unavailable offerings: %w", err)
	}
	if missing {
		object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	}
	list, changed := change(planning.ReadUnavailable(object))
	if !changed {
		return nil
	}
	object = object.DeepCopy()
	text, err := json.Marshal(list)
	if err != nil {
		return fault.E("encoding the unavailable offerings", fault.Bug, err)
	}
	object.Data = map[string]string{planning.UnavailableKey: string(text)}
	if missing {
		_, err = client.Create(ctx, object)
	} else {
		_, err = client.Update(ctx, object)
	}
	if err != nil {
		return fmt.Errorf("writing the unavailable offerings: %w", err)
	}
	return nil
}

// isNeeded reports whether an entry has not expired, or is a pause that ended within pauseMemory.
func isNeeded(u planning.Unavailable, now time.Time) bool {
	end := u.Until
	if u.NodePool != "" {
		end = end.Add(pauseMemory)
	}
	return end.After(now)
}

// mergeUnavailable keeps the latest expiry of each offering and drops entries that are not needed. Beyond
// MaxUnavailableBytes it drops the offerings that expire first.
func mergeUnavailable(old, fresh []planning.Unavailable, now time.Time) []planning.Unavailable {
	latest := map[string]planning.Unavailable{}
	for _, u := range slices.Concat(old, fresh) {
		if have, ok := latest[unavailableKey(u)]; isNeeded(u, now) && (!ok || u.Until.After(have.Until)) {
			latest[unavailableKey(u)] = u
		}
	}
	out := make([]planning.Unavailable, 0, len(latest))
	for _, u := range latest {
		out = append(out, u)
	}
	out = limitSize(out)
	slices.SortFunc(out, func(a, b planning.Unavailable) int { return strings.Compare(unavailableKey(a), unavailableKey(b)) })
	return out
}

// limitSize returns the pauses of NodePools and the offerings that expire last, within
// MaxUnavailableBytes.
func limitSize(all []planning.Unavailable) []planning.Unavailable {
	slices.SortFunc(all, func(a, b planning.Unavailable) int {
		return cmp.Or(strings.Compare(b.NodePool, a.NodePool), b.Until.Compare(a.Until), strings.Compare(unavailableKey(a), unavailableKey(b)))
	})
	left := MaxUnavailableBytes - len("[]")
	return slices.DeleteFunc(all, func(u planning.Unavailable) bool {
		written, err := json.Marshal(u)
		if n := len(written) + len(","); err == nil && n <= left {
			left -= n
			return false
		}
		return true
	})
}

// unavailableKey identifies an entry regardless of its expiry. A full reservation may be unavailable
// too, and is then two entries.
func unavailableKey(u planning.Unavailable) string {
	parts := []string{u.InstanceType, u.Zone, u.CapacityType, u.Subnet, u.PlacementGroup, u.Reservation, u.NodePool}
	if u.IsReservationFull() {
		parts = append(parts, u.Reason)
	}
	return strings.Join(parts, "/")
}
