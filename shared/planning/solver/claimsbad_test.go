package solver_test

import (
	"math"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// TestBadDevices plans a pod whose claim, class or ResourceSlices are wrong, together with a pod with a good claim
// and a pod without claims. The bad pod is rejected with the reason, and the others are placed.
func TestBadDevices(t *testing.T) {
	all := func(class string) resourcev1.DeviceRequest {
		r := exactly(0, class)
		r.Exactly.AllocationMode = resourcev1.DeviceAllocationModeAll
		return r
	}
	published := func(c *claimCluster, edit func(*resourcev1.ResourceSliceSpec)) {
		c.addRemoteDevices("ap-northeast-2b", "r")
		edit(&c.Snapshot.Devices.Slices[0].Spec)
	}
	const few = "the node has too few free devices for ResourceClaim bad-0-claim, or they violate its constraints"
	const unmatched = "ResourceClaim bad-0-claim: no device of the node matches request request"
	for _, tt := range []struct {
		name, want string
		edit       func(*claimCluster) resourcev1.DeviceRequest
	}{
		{"a selector that does not compile", `pod: ResourceClaim bad-0-claim, request request: CEL expression "device.nothing ==" does not compile: `,
			func(*claimCluster) resourcev1.DeviceRequest { return exactly(1, "gpu", "device.nothing ==") }},
		{"a selector that is not a condition", `pod: ResourceClaim bad-0-claim, request request: CEL expression "1 + 1" does not compile: the expression has type int, not bool`,
			func(*claimCluster) resourcev1.DeviceRequest { return exactly(1, "gpu", "1 + 1") }},
		{"a class whose selector does not compile", `pod: ResourceClaim bad-0-claim, request request: CEL expression "(" does not compile: `, func(c *claimCluster) resourcev1.DeviceRequest {
			c.Snapshot.Devices.Classes = append(c.Snapshot.Devices.Classes, newClass("broken", "("))
			return exactly(1, "broken")
		}},
		{"an unknown class", `pod: ResourceClaim bad-0-claim, request request: DeviceClass "none" not found`, func(*claimCluster) resourcev1.DeviceRequest { return exactly(1, "none") }},
		{"a selector that fails for a device", "devices: " + unmatched, func(*claimCluster) resourcev1.DeviceRequest {
			return exactly(1, "gpu", `device.attributes["other.example.com"].missing == "x"`)
		}},
		{"a selector that fails for a device, of a request for all", `devices: ResourceClaim bad-0-claim, request request: evaluating CEL expression`, func(*claimCluster) resourcev1.DeviceRequest {
			r := all("gpu")
			r.Exactly.Selectors = append(r.Exactly.Selectors[:0:0], resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: `device.attributes["other.example.com"].missing == "x"`}})
			return r
		}},
		{"a selector that costs too much", "devices: " + unmatched, func(*claimCluster) resourcev1.DeviceRequest {
			list := "[" + strings.TrimSuffix(strings.Repeat("1,", 400), ",") + "]"
			return exactly(1, "gpu", list+".all(a, "+list+".all(b, "+list+".all(c, a == b && b == c || true)))")
		}},
		{"a slice that promises more slices", "devices: " + few, func(c *claimCluster) resourcev1.DeviceRequest {
			published(c, func(s *resourcev1.ResourceSliceSpec) { s.Pool.ResourceSliceCount = 2 })
			return exactly(1, "remote")
		}},
		{"a slice that promises fewer slices", "devices: " + few, func(c *claimCluster) resourcev1.DeviceRequest {
			published(c, func(s *resourcev1.ResourceSliceSpec) { s.Pool.ResourceSliceCount = math.MinInt64 })
			return exactly(1, "remote")
		}},
		{"a slice that promises more slices, of a request for all", "devices: ResourceClaim bad-0-claim: request request is for all devices, and pool remote.example.com/ap-northeast-2b is incomplete: ResourceSlices are missing", func(c *claimCluster) resourcev1.DeviceRequest {
			published(c, func(s *resourcev1.ResourceSliceSpec) { s.Pool.ResourceSliceCount = math.MaxInt64 })
			return all("remote")
		}},
		{"a slice of an older generation", "devices: " + unmatched, func(c *claimCluster) resourcev1.DeviceRequest {
			published(c, func(s *resourcev1.ResourceSliceSpec) { s.Pool.Generation = -1 })
			newer := c.Snapshot.Devices.Slices[0]
			newer.Name, newer.Spec.Devices, newer.Spec.Pool.Generation = "newer", nil, math.MaxInt64
			c.Snapshot.Devices.Slices = append(c.Snapshot.Devices.Slices, newer)
			return exactly(1, "remote")
		}},
		{"two devices of one name", "devices: " + few, func(c *claimCluster) resourcev1.DeviceRequest {
			published(c, func(s *resourcev1.ResourceSliceSpec) { s.Devices = append(s.Devices, s.Devices[0]) })
			return exactly(1, "remote")
		}},
		{"a device that consumes counters that do not exist", "devices: " + few, func(c *claimCluster) resourcev1.DeviceRequest {
			published(c, func(s *resourcev1.ResourceSliceSpec) {
				s.Devices[0].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "none", Counters: map[string]resourcev1.Counter{"x": {Value: resource.MustParse("1")}}}}
			})
			return exactly(1, "remote")
		}},
		{"an attribute without a value", "devices: " + unmatched, func(c *claimCluster) resourcev1.DeviceRequest {
			published(c, func(s *resourcev1.ResourceSliceSpec) {
				s.Devices[0].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"x": {}}
			})
			return exactly(1, "remote", "true")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClaimCluster()
			bad := tt.edit(c)
			c.addPods("bad", 1, bad)
			c.addPods("good", 1, exactly(1, "gpu"))
			c.Pending = append(c.Pending, planningtest.NewPods("plain", 1, "100m", "100Mi"))
			got := c.solve(t)
			placed, rejected, _ := strings.Cut(got, "; 1 unplaced: ")
			if want := "good-0 plain-0 on t4g.2xlarge|t4g.xlarge with gpu-0"; placed != want || !strings.HasPrefix(rejected, tt.want) {
				t.Errorf("got  %s\nwant %s; 1 unplaced: %s", got, want, tt.want)
			}
		})
	}
	t.Run("a template whose claim is not generated", func(t *testing.T) {
		c := newClaimCluster()
		c.addPods("bad", 1).Spec.Claims[0] = planning.PodClaim{Problem: `resourceclaim of the template "default/none" not found`}
		c.addPods("good", 1, exactly(1, "gpu"))
		if got, want := c.solve(t), `good-0 on t4g.2xlarge|t4g.xlarge with gpu-0; 1 unplaced: pod: resourceclaim of the template "default/none" not found`; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
