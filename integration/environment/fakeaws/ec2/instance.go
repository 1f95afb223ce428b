package ec2

import (
	"cmp"
	"context"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

type instance struct {
	ID             string          `xml:"instanceId"`
	Image          string          `xml:"imageId"`
	State          cloudState      `xml:"instanceState"`
	DNS            string          `xml:"privateDnsName"`
	Type           string          `xml:"instanceType"`
	Launched       time.Time       `xml:"launchTime"`
	Zone           string          `xml:"placement>availabilityZone"`
	Partition      int32           `xml:"placement>partitionNumber,omitempty"`
	Group          string          `xml:"placement>groupName,omitempty"`
	GroupID        string          `xml:"placement>groupId,omitempty"`
	SecurityGroups []securityGroup `xml:"groupSet>item"`
	Subnet         string          `xml:"subnetId,omitempty"`
	Lifecycle      string          `xml:"instanceLifecycle,omitempty"`
	SpotRequest    string          `xml:"spotInstanceRequestId,omitempty"`
	Reservation    string          `xml:"capacityReservationId,omitempty"`
	Preference     string          `xml:"capacityReservationSpecification>capacityReservationPreference,omitempty"`
	Profile        string          `xml:"iamInstanceProfile>arn,omitempty"`
	Tags           []tag           `xml:"tagSet>item"`
}

// securityGroup is a security group of an instance.
type securityGroup struct {
	ID string `xml:"groupId"`
}

type cloudState struct {
	Code int         `xml:"code"`
	Name cloud.State `xml:"name"`
}

// stateCodes are EC2's numeric codes of the states.
var stateCodes = map[cloud.State]int{
	cloud.Pending: 0, cloud.Running: 16, cloud.ShuttingDown: 32,
	cloud.Terminated: 48, cloud.Stopping: 64, cloud.Stopped: 80,
}

func state(s cloud.State) cloudState { return cloudState{stateCodes[s], s} }

// reservation groups instances in EC2's responses; here each has exactly one.
type reservation struct {
	ID        string     `xml:"reservationId"`
	Instances []instance `xml:"instancesSet>item"`
}

func (s *Service) describeInstances(ctx context.Context, form query.Form) (any, error) {
	filter, err := instanceFilter(form)
	if err != nil {
		return nil, err
	}
	if ids := form.List("InstanceId"); len(ids) > 0 {
		filter.IDs = ids
	}
	found, err := s.cloud.DescribeInstances(ctx, filter)
	if err != nil {
		return nil, err
	}
	if missing := s.unknownInstance(form.List("InstanceId")); missing != "" {
		return nil, refusal{"InvalidInstanceID.NotFound", "The instance ID '" + missing + "' does not exist"}
	}
	var out struct {
		Reservations []reservation `xml:"reservationSet>item"`
		Next         string        `xml:"nextToken,omitempty"`
	}
	found, out.Next = paged(form, found)
	for _, i := range found {
		out.Reservations = append(out.Reservations, reservation{"r-" + i.ID[2:], []instance{shown(i)}})
	}
	return out, nil
}

// unknownInstance returns the first id of an instance that never existed, or "". EC2 rejects a request that names one;
// filters ignore it.
func (s *Service) unknownInstance(ids []string) string {
	for _, id := range ids {
		if _, ok := s.cloud.Record(id); !ok {
			return id
		}
	}
	return ""
}

func shown(i cloud.Instance) instance {
	out := instance{
		ID: i.ID, Image: i.ImageID, State: state(i.State), DNS: i.PrivateDNS, Type: i.Type,
		Launched: i.Launched, Zone: i.Zone, Partition: i.Partition, Subnet: i.SubnetID, Tags: tagSet(i.Tags),
		Group: i.PlacementGroup, GroupID: i.PlacementGroupID, Reservation: i.Reservation,
	}
	for _, id := range i.SecurityGroups {
		out.SecurityGroups = append(out.SecurityGroups, securityGroup{id})
	}
	if i.Profile != "" {
		out.Profile = "arn:aws:iam::123456789012:instance-profile/karpenter/" + i.Profile
	}
	switch i.CapacityType {
	case cloud.Spot:
		out.Lifecycle, out.SpotRequest = cloud.Spot, "sir-"+i.ID[2:]
	case cloud.Reserved:
		out.Reservation, out.Preference = cmp.Or(i.Reservation, "cr-00000000000000001"), "capacity-reservations-only"
	}
	return out
}

type stateChange struct {
	ID      string     `xml:"instanceId"`
	Current cloudState `xml:"currentState"`
}

func (s *Service) terminate(ctx context.Context, form query.Form) (any, error) {
	ids := form.List("InstanceId")
	if err := s.cloud.TerminateStrictly(ctx, ids); err != nil {
		return nil, err
	}
	var out struct {
		Instances []stateChange `xml:"instancesSet>item"`
	}
	for _, id := range ids {
		record, _ := s.cloud.Record(id)
		out.Instances = append(out.Instances, stateChange{id, state(record.State)})
	}
	return out, nil
}

// reboot serves one instance at a time, as Joist's adapter calls it.
func (s *Service) reboot(ctx context.Context, form query.Form) (any, error) {
	if err := s.cloud.Reboot(ctx, form.Get("InstanceId.1")); err != nil {
		return nil, err
	}
	return empty{Return: true}, nil
}

func (s *Service) createTags(ctx context.Context, form query.Form) (any, error) {
	if err := s.cloud.Tag(ctx, form.List("ResourceId"), form.Tags("Tag")); err != nil {
		return nil, err
	}
	return empty{Return: true}, nil
}

type status struct {
	ID       string       `xml:"instanceId"`
	Instance checks       `xml:"instanceStatus"`
	System   checks       `xml:"systemStatus"`
	Events   []plannedFor `xml:"eventsSet>item"`
}

type checks struct {
	Status  string  `xml:"status"`
	Details []check `xml:"details>item"`
}

type check struct {
	Name   string     `xml:"name"`
	Status string     `xml:"status"`
	Since  *time.Time `xml:"impairedSince,omitempty"`
}

type plannedFor struct {
	Code        string    `xml:"code"`
	Description string    `xml:"description"`
	NotBefore   time.Time `xml:"notBefore"`
}

func (s *Service) describeStatus(ctx context.Context, form query.Form) (any, error) {
	matches, err := statusFilter(form)
	if err != nil {
		return nil, err
	}
	found, err := s.cloud.DescribeStatus(ctx)
	if err != nil {
		return nil, err
	}
	var matching []status
	for _, f := range found {
		if item := shownStatus(f); matches(item) {
			matching = append(matching, item)
		}
	}
	var out struct {
		Statuses []status `xml:"instanceStatusSet>item"`
		Next     string   `xml:"nextToken,omitempty"`
	}
	out.Statuses, out.Next = paged(form, matching)
	return out, nil
}

func shownStatus(of cloud.Status) status {
	out := status{ID: of.InstanceID, Instance: passed(), System: passed()}
	if !of.Impaired.IsZero() {
		out.Instance = checks{"impaired", []check{{"reachability", "failed", &of.Impaired}}}
	}
	for _, e := range of.Events {
		out.Events = append(out.Events, plannedFor{e.Code, "planned by AWS", e.NotBefore})
	}
	return out
}

func passed() checks { return checks{"ok", []check{{Name: "reachability", Status: "passed"}}} }
