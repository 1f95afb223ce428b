package memcloud_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/cloudtest"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

func TestConformance(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Subject {
		now := start
		c := memcloud.New(memcloud.Options{Now: func() time.Time { return now }})
		w := c.Furnish("web")
		c.AddRole("other")
		image := c.AddImage(cloud.Image{
			Name: "joist-test-1", Arch: "amd64", Tags: map[string]string{"joist/image": "yes"},
		})
		c.SetParameter("/joist/image", image.ID)
		reservations, groups := cloudtest.AddPlacements(c, "m6i.large", w.Subnets[0].Zone, start)
		return cloudtest.Subject{
			Cloud: c,
			World: cloudtest.World{
				Region: c.Region(), Cluster: w.Cluster, ImageParameter: "/joist/image", Subnets: w.Subnets, SecurityGroup: w.SecurityGroup,
				TagKey: "karpenter.sh/discovery", TagValue: "web", Image: image, Type: "m6i.large",
				Reservations: reservations, PlacementGroups: groups,
				Role: w.Role, OtherRole: "other",
			},
			Features: cloudtest.Features{
				Wait: func(d time.Duration) { now = now.Add(d) },
				Leave: func(zone string, n int) {
					c.SetCapacity(event.Offering{InstanceType: "m6i.large", Zone: zone, CapacityType: cloud.OnDemand}, n)
				},
				Deny: func(action string) func() {
					c.Deny(memcloud.Action(action))
					return func() { c.Allow(memcloud.Action(action)) }
				},
				Throttle: func(action string) func() {
					c.Refuse(memcloud.Action(action), fault.Throttled, "RequestLimitExceeded", "Request limit exceeded.")
					return func() { c.EndFaults(memcloud.Action(action)) }
				},
				Lose:   func(action string) { c.LoseAnswer(memcloud.Action(action)) },
				Lag:    func(d time.Duration) { c.SetFaults(memcloud.Faults{Lag: d}) },
				Impair: c.Impair, Plan: c.Plan, Shift: cloudtest.Shifter(c.Shift, func() time.Time { return now }),
			},
		}
	})
}
