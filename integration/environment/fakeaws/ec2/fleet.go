package ec2

import (
	"cmp"
	"context"
	"strconv"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

type fleetAnswer struct {
	FleetID   string          `xml:"fleetId"`
	Instances []fleetInstance `xml:"fleetInstanceSet>item"`
	Errors    []fleetError    `xml:"errorSet>item"`
}

type fleetInstance struct {
	IDs       []string `xml:"instanceIds>item"`
	Type      string   `xml:"instanceType"`
	Lifecycle string   `xml:"lifecycle"`
	From      from     `xml:"launchTemplateAndOverrides"`
}

type fleetError struct {
	Code      string `xml:"errorCode"`
	Message   string `xml:"errorMessage"`
	Lifecycle string `xml:"lifecycle"`
	From      from   `xml:"launchTemplateAndOverrides"`
}

// from identifies the override of a launched instance. It names the template by id
// instead of name, which EC2 may do, and repeats the zone.
type from struct {
	TemplateID string `xml:"launchTemplateSpecification>launchTemplateId"`
	Version    string `xml:"launchTemplateSpecification>version"`
	Type       string `xml:"overrides>instanceType"`
	Subnet     string `xml:"overrides>subnetId"`
	Zone       string `xml:"overrides>availabilityZone,omitempty"`
	Image      string `xml:"overrides>imageId,omitempty"`
}

func (s *Service) createFleet(ctx context.Context, form query.Form) (any, error) {
	request := fleetRequest(form)
	lifecycle := cmp.Or(request.Target, request.CapacityType)
	if s.reserved(request) {
		request.CapacityType = cloud.Reserved
	}
	if isDryRun(form) {
		return nil, dryRunError(s.cloud.TryFleet(ctx, request))
	}
	result, err := s.cloud.CreateFleet(ctx, request)
	if err != nil {
		return nil, err
	}
	out := fleetAnswer{FleetID: result.FleetID}
	for _, i := range result.Instances {
		out.Instances = append(out.Instances, fleetInstance{
			IDs: i.IDs, Type: i.InstanceType, Lifecycle: lifecycle, From: s.launchedFrom(i, request),
		})
	}
	for _, e := range result.Errors {
		out.Errors = append(out.Errors, fleetError{
			Code: e.Code, Message: e.Message, Lifecycle: lifecycle, From: origin(e.InstanceType, e.SubnetID, e.Zone),
		})
	}
	return out, nil
}

func origin(instanceType, subnet, zone string) from {
	return from{TemplateID: "lt-00000000000000001", Version: "1", Type: instanceType, Subnet: subnet, Zone: zone}
}

// launchedFrom returns the override of launched instances. EC2 repeats the image that the override names.
func (s *Service) launchedFrom(i cloud.FleetInstances, request cloud.FleetRequest) from {
	out := origin(i.InstanceType, i.SubnetID, i.Zone)
	for _, config := range request.Configs {
		for _, o := range config.Overrides {
			if o.InstanceType == i.InstanceType && o.SubnetID == i.SubnetID && config.Template == i.Template {
				out.Image = o.ImageID
			}
		}
	}
	return out
}

// reserved reports whether the template names a capacity reservation, into which EC2 then
// launches the fleet's on-demand instances.
func (s *Service) reserved(request cloud.FleetRequest) bool {
	if request.CapacityType != cloud.OnDemand || len(request.Configs) == 0 {
		return false
	}
	t, ok := s.cloud.Template(request.Configs[0].Template)
	return ok && t.Reservation != nil && t.Reservation.ID != ""
}

func fleetRequest(form query.Form) cloud.FleetRequest {
	out := cloud.FleetRequest{
		Token: form.Get("ClientToken"), Count: form.Int("TargetCapacitySpecification.TotalTargetCapacity"),
		CapacityType: form.Get("TargetCapacitySpecification.DefaultTargetCapacityType"), TagSets: tagSets(form),
	}
	out.Context = form.Get("Context")
	if out.CapacityType == cloud.TargetCapacityBlock || out.CapacityType == cloud.TargetReservedCapacity {
		out.CapacityType, out.Target = cloud.Reserved, out.CapacityType
	}
	out.Strategy = form.Get("OnDemandOptions.AllocationStrategy")
	if out.CapacityType == cloud.Spot {
		out.Strategy = form.Get("SpotOptions.AllocationStrategy")
	}
	for _, config := range form.Each("LaunchTemplateConfigs") {
		c := cloud.FleetConfig{Template: config.Get("LaunchTemplateSpecification.LaunchTemplateName")}
		for _, o := range config.Each("Overrides") {
			c.Overrides = append(c.Overrides, override(o))
		}
		out.Configs = append(out.Configs, c)
	}
	return out
}

func override(o query.Form) cloud.Override {
	out := cloud.Override{
		InstanceType: o.Get("InstanceType"), SubnetID: o.Get("SubnetId"),
		Zone: o.Get("AvailabilityZone"), ImageID: o.Get("ImageId"),
	}
	if priority, err := strconv.ParseFloat(o.Get("Priority"), 64); err == nil {
		out.Priority = &priority
	}
	return out
}
