// Package launchresult builds the result of a launch from EC2's answers. It is pure, and only this
// package decides which offerings an error code of EC2 makes unavailable.
package launchresult

import (
	"cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// FromFleet returns the result of a CreateFleet call. ok is false if the answer has neither
// instances nor errors.
func FromFleet(intent launchspec.Intent, answer cloud.FleetResult) (result event.LaunchSettled, ok bool) {
	result = event.LaunchSettled{Intent: intent.ID, Wanted: intent.Fleet.Count, Spent: true}
	for _, group := range answer.Instances {
		for _, id := range group.IDs {
			result.Instances = append(result.Instances, event.Launched{
				InstanceID: id,
				Offering: event.Offering{
					InstanceType: group.InstanceType, Zone: resolveZone(intent, group.Zone, group.SubnetID), CapacityType: intent.Fleet.CapacityType,
				},
				ImageID: templateImage(intent, group.Template),
			})
		}
	}
	for _, e := range answer.Errors {
		result.Refusals = append(result.Refusals, buildRefusals(intent, e)...)
	}
	if len(result.Instances) < result.Wanted && len(result.Refusals) == 0 {
		if len(result.Instances) == 0 {
			return result, false
		}
		result.Refusals = []event.Refusal{{Code: "Unfulfilled", Message: "EC2 launched fewer instances and gave no reason"}}
	}
	return result, true
}

// FromError returns the result of a call that EC2 rejected before it used the token. An error code
// of insufficient capacity makes the same offerings unavailable as in an answer.
func FromError(intent launchspec.Intent, err error) event.LaunchSettled {
	e := cloud.FleetError{Code: cmp.Or(cloud.Code(err), string(fault.KindOf(err))), Message: err.Error()}
	return event.LaunchSettled{Intent: intent.ID, Wanted: intent.Fleet.Count, Refusals: buildRefusals(intent, e)}
}

// FromTerminated returns the result of an intent whose instance is terminated and no longer
// returned by EC2. The token is spent: EC2 launches nothing for it again.
func FromTerminated(intent launchspec.Intent, err error) event.LaunchSettled {
	result := FromError(intent, err)
	result.Spent = true
	return result
}

// FromInstances returns the result for instances that have the intent's tag.
func FromInstances(intent launchspec.Intent, instances []cloud.Instance) event.LaunchSettled {
	result := event.LaunchSettled{Intent: intent.ID, Wanted: max(intent.Fleet.Count, len(instances)), Spent: true}
	for _, i := range instances {
		result.Instances = append(result.Instances, event.Launched{
			InstanceID: i.ID, ImageID: i.ImageID,
			Offering: event.Offering{InstanceType: i.Type, Zone: i.Zone, CapacityType: i.CapacityType},
		})
	}
	if missing := intent.Fleet.Count - len(instances); missing > 0 {
		// EC2 may return more instances later; the inventory binds them to their claims.
		result.Spent = false
	}
	return result
}

func templateImage(intent launchspec.Intent, template string) string {
	for _, t := range intent.Templates {
		if t.Name == template {
			return t.ImageID
		}
	}
	return ""
}
