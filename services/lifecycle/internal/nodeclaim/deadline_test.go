package nodeclaim_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// A deadline only ever becomes earlier.
func TestWithEarlierDeadline(t *testing.T) {
	const key = karpenter.NodeClaimTerminationTimestampAnnotationKey
	hour := noon.Add(time.Hour)
	for _, test := range []struct {
		name, have string
		at         time.Time
		want       string
	}{
		{"no deadline yet", "", hour, "2026-11-20T13:00:00Z"},
		{"a later deadline", "2026-11-20T14:00:00Z", hour, "2026-11-20T13:00:00Z"},
		{"the same deadline", "2026-11-20T13:00:00Z", hour, ""},
		{"an earlier deadline", "2026-11-20T12:30:00Z", hour, ""},
		{"an earlier deadline in another time zone", "2026-11-20T13:30:00+01:00", hour, ""},
		{"an invalid deadline", "tomorrow", hour, "2026-11-20T13:00:00Z"},
		{"no new deadline", "2026-11-20T14:00:00Z", time.Time{}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &karpenter.NodeClaim{}
			if test.have != "" {
				c.Annotations = map[string]string{key: test.have}
			}
			got, changed := nodeclaim.WithEarlierDeadline(c, test.at)
			if changed != (test.want != "") {
				t.Fatalf("changed: %t", changed)
			}
			if !changed && got != c {
				t.Error("returned a copy of an unchanged claim")
			}
			if changed && got.Annotations[key] != test.want {
				t.Errorf("got deadline %s, want %s", got.Annotations[key], test.want)
			}
			if c.Annotations[key] != test.have {
				t.Error("the claim of the cache was changed")
			}
		})
	}
}
