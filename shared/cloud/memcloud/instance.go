package memcloud

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

// instance is the real state of one instance.
type instance struct {
	cloud.Instance
	template cloud.Template
	token    string
	fleet    string
	offering event.Offering
	price    float64
	address  int
	subnet   *subnet
	// others are the tags of resources created with the instance, by kind of resource.
	others map[string]map[string]string

	// born are the tags at launch.
	born map[string]string

	visible time.Time
	history []moment
	writes  []tagWrite
	// running and ended limit the billed time; ended is zero while it runs.
	running, ended time.Time
	gone           time.Time
	forgotten      bool
	// warned is the termination time in a spot warning.
	warned time.Time
	// protected instances cannot be terminated by a call.
	protected bool
}

// moment is a state that Describe shows from a time on.
type moment struct {
	state cloud.State
	shown time.Time
}

// tagWrite is tags that Describe shows from a time on.
type tagWrite struct {
	tags  map[string]string
	shown time.Time
}

// launch creates one instance of a candidate that is neither unlaunchable nor exhausted.
func (c *Cloud) launch(request cloud.FleetRequest, from candidate, fleet string) *instance {
	offer := c.offers[from.offering]
	if offer.counted {
		offer.free--
	}
	t := c.templates[from.template].Template
	i := &instance{template: t, token: request.Token, fleet: fleet, offering: from.offering, price: offer.price}
	i.subnet = c.subnets[from.SubnetID]
	i.address = i.subnet.lease(c.faults.ReuseAddresses)
	i.Instance = cloud.Instance{
		ID: c.identify("i"), Type: from.InstanceType, Zone: from.offering.Zone,
		CapacityType: from.offering.CapacityType, State: cloud.Pending, ImageID: t.ImageID,
		SubnetID: from.SubnetID, Launched: c.clock, PrivateDNS: c.privateDNS(i.subnet, i.address), Profile: t.InstanceProfile,
	}
	i.Partition = c.partition(t.Placement)
	i.SecurityGroups = slices.Clone(t.SecurityGroups)
	if group, ok := c.group(t.Placement); ok {
		i.PlacementGroup, i.PlacementGroupID = group.Name, group.ID
	}
	if t.Reservation != nil && i.CapacityType == cloud.Reserved {
		i.Reservation = t.Reservation.ID
	}
	if from.ImageID != "" {
		i.ImageID = from.ImageID
	}
	i.born, i.others = launchTags(t, request, fleet)
	i.Tags = maps.Clone(i.born)
	i.visible = c.clock.Add(c.drawLag("visible", i.ID))
	c.all = append(c.all, i)
	c.existing = append(c.existing, i)
	c.instances[i.ID] = i
	c.announce(i, cloud.Pending)
	c.schedule(i, c.clock.Add(c.drawBoot(i.ID)), cloud.Running)
	return i
}

// launchTags merges the tags of the template with those of the request, which take precedence, and adds EC2's fleet
// id tag.
func launchTags(t cloud.Template, request cloud.FleetRequest, fleet string) (own map[string]string, others map[string]map[string]string) {
	others = map[string]map[string]string{}
	for _, set := range slices.Concat(t.TagSets, request.TagSets) {
		if others[set.Resource] == nil {
			others[set.Resource] = map[string]string{}
		}
		maps.Copy(others[set.Resource], set.Tags)
	}
	own = others["instance"]
	if own == nil {
		own = map[string]string{}
	}
	own["aws:ec2:fleet-id"] = fleet
	delete(others, "instance")
	return own, others
}

func (c *Cloud) privateDNS(s *subnet, address int) string {
	suffix := c.options.Region + ".compute.internal"
	if c.options.Region == "us-east-1" {
		suffix = "ec2.internal"
	}
	return fmt.Sprintf("ip-10-%d-%d-%d.%s", s.ordinal, address>>8, address&255, suffix)
}

// Record is the real state of one instance, for checkers.
type Record struct {
	// Instance is the real state, not the one that Describe shows. Its tags are shared: callers must not modify them.
	cloud.Instance
	Token, FleetID, Template string
	// PricePerHour is in dollars, fixed at launch.
	PricePerHour float64
	// Others are the tags of volumes and interfaces, by kind of resource.
	Others map[string]map[string]string
	// Visible is when Describe begins to show it.
	Visible time.Time
	// Running, Ended and Gone are when it was running, shutting down and terminated; zero if not yet.
	Running, Ended, Gone time.Time
	// Warned is the deadline in a spot warning.
	Warned time.Time
}

// Records returns the real state of all instances ever, in the order of launch.
func (c *Cloud) Records() []Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Record, 0, len(c.all))
	for _, i := range c.all {
		out = append(out, i.record())
	}
	return out
}

// Terminated returns the IDs of all instances that are terminated, in the order of launch.
func (c *Cloud) Terminated() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, i := range c.all {
		if !i.gone.IsZero() {
			out = append(out, i.ID)
		}
	}
	return out
}

// Record returns the real state of one instance.
func (c *Cloud) Record(id string) (Record, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.instances[id]
	if i == nil {
		return Record{}, false
	}
	return i.record(), true
}

func (i *instance) record() Record {
	return Record{
		Instance: i.Instance, Token: i.token, FleetID: i.fleet, Template: i.template.Name,
		PricePerHour: i.price, Others: i.others, Visible: i.visible,
		Running: i.running, Ended: i.ended, Gone: i.gone, Warned: i.warned,
	}
}
