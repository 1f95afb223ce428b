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
	key := cluster.Key{Namespace: namespace, Name: planning.UnavailableConfigMapName}
	object, err := cluster.Get[*corev1.ConfigMap](ctx, client, cluster.ConfigMaps, key)
	missing := fault.Is(err, fault.Missing)
	if err != nil && !missing {
		return fmt.Errorf("reading the unavailable offerings: %w", err)
	}
	if missing {
		object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	}
	object = object.DeepCopy()
	text, err := json.Marshal(mergeUnavailable(planning.ReadUnavailable(object), fresh, now))
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

// mergeUnavailable keeps the latest expiry of each offering and drops expired ones. Beyond
// MaxUnavailableBytes it drops the offerings that expire first.
func mergeUnavailable(old, fresh []planning.Unavailable, now time.Time) []planning.Unavailable {
	latest := map[string]planning.Unavailable{}
	for _, u := range slices.Concat(old, fresh) {
		if have, ok := latest[unavailableKey(u)]; u.Until.After(now) && (!ok || u.Until.After(have.Until)) {
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

// limitSize returns the offerings that expire last, within MaxUnavailableBytes.
func limitSize(all []planning.Unavailable) []planning.Unavailable {
	slices.SortFunc(all, func(a, b planning.Unavailable) int {
		return cmp.Or(b.Until.Compare(a.Until), strings.Compare(unavailableKey(a), unavailableKey(b)))
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
	parts := []string{u.InstanceType, u.Zone, u.CapacityType, u.Subnet, u.PlacementGroup, u.Reservation}
	if u.IsReservationFull() {
		parts = append(parts, u.Reason)
	}
	return strings.Join(parts, "/")
}
