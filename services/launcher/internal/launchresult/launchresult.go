// Package settle turns EC2's answers into launch.settled. It is pure, and it
// is the one place that knows what EC2's error codes blame.
package launchresult

import (
	"cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// FromFleet settles an intent by the answer to its fleet call. ok is false when
// the answer says nothing at all.
func FromFleet(intent launchspec.Intent, result cloud.FleetResult) (settled event.LaunchSettled, ok bool) {
	settled = event.LaunchSettled{Intent: intent.ID, Wanted: intent.Fleet.Count, Spent: true}
	for _, group := range result.Instances {
		for _, id := range group.IDs {
			settled.Instances = append(settled.Instances, event.Launched{
				InstanceID: id,
				Offering: event.Offering{
					InstanceType: group.InstanceType, Zone: resolveZone(intent, group.Zone, group.SubnetID), CapacityType: intent.Fleet.CapacityType,
				},
				ImageID: templateImage(intent, group.Template),
			})
		}
	}
	for _, e := range result.Errors {
		settled.Refusals = append(settled.Refusals, buildRefusals(intent, e)...)
	}
	if len(settled.Instances) < settled.Wanted && len(settled.Refusals) == 0 {
		if len(settled.Instances) == 0 {
			return settled, false
		}
		settled.Refusals = []event.Refusal{{Code: "Unfulfilled", Message: "EC2 gave fewer instances and no reason"}}
	}
	return settled, true
}

// FromError settles an intent that EC2 turned away before taking its token. A code
// that is a shortage blames what it would blame inside an answer.
func FromError(intent launchspec.Intent, err error) event.LaunchSettled {
	e := cloud.FleetError{Code: cmp.Or(cloud.Code(err), string(fault.KindOf(err))), Message: err.Error()}
	return event.LaunchSettled{Intent: intent.ID, Wanted: intent.Fleet.Count, Refusals: buildRefusals(intent, e)}
}

// FromTerminated settles an intent whose token EC2 knows by an instance that is terminated
// and shown no more. The token is spent: EC2 launches nothing for it again.
func FromTerminated(intent launchspec.Intent, err error) event.LaunchSettled {
	settled := FromError(intent, err)
	settled.Spent = true
	return settled
}

// FromInstances settles an intent by instances that carry its tag.
func FromInstances(intent launchspec.Intent, instances []cloud.Instance) event.LaunchSettled {
	settled := event.LaunchSettled{Intent: intent.ID, Wanted: max(intent.Fleet.Count, len(instances)), Spent: true}
	for _, i := range instances {
		settled.Instances = append(settled.Instances, event.Launched{
			InstanceID: i.ID, ImageID: i.ImageID,
			Offering: event.Offering{InstanceType: i.Type, Zone: i.Zone, CapacityType: i.CapacityType},
		})
	}
	if missing := intent.Fleet.Count - len(instances); missing > 0 {
		// Some may only be late to be seen: the inventory binds those.
		settled.Spent = false
	}
	return settled
}

func templateImage(intent launchspec.Intent, template string) string {
	for _, t := range intent.Templates {
		if t.Name == template {
			return t.ImageID
		}
	}
	return ""
}
