package event

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// LaunchRequested asks the launcher to execute one intent. Lifecycle sends it again with the same id until the
// NodeClaims have a result; EC2's ClientToken derives from the intent's id, so repeated requests are one launch.
type LaunchRequested struct {
	// Intent is the id of the intent, and IntentRef the reference to its document.
	Intent    string `json:"intent"`
	IntentRef Ref    `json:"intentRef"`
	// Claims is how many NodeClaims share the CreateFleet call.
	Claims int `json:"claims"`
}

func (LaunchRequested) EventType() Type { return LaunchRequestedType }

// Key is the intent.
func (b LaunchRequested) Key() []string   { return []string{b.Intent} }
func (b LaunchRequested) Subject() string { return "intent/" + b.Intent }
func (b LaunchRequested) Reference() Ref  { return b.IntentRef }

// Validate requires an intent and its document.
func (b LaunchRequested) Validate() error {
	if b.Intent == "" || b.Claims <= 0 {
		return errors.New("intent and claims are needed")
	}
	return b.IntentRef.ValidateKind(IntentKind)
}

// Offering is an instance type in a zone with a capacity type. An empty field means any value.
type Offering struct {
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
}

// Launched is one instance that a CreateFleet call launched.
type Launched struct {
	InstanceID string `json:"instanceId"`
	Offering
	ImageID string `json:"imageId,omitempty"`
}

// Refusal is one definite reason why an intent got fewer instances than it requested.
type Refusal struct {
	// Code is EC2's error code ("InsufficientInstanceCapacity").
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	// Blamed lists the offerings to avoid for a while. Only a shortage sets it; throttling, denied calls and invalid
	// input do not make an offering unavailable.
	Blamed []Offering `json:"blamed,omitempty"`
	// Subnet is set if the subnet has no free addresses. Blamed then has its zone, where another subnet may have
	// some.
	Subnet string `json:"subnet,omitempty"`
	// PlacementGroup is set if the launch was into one, by its id or name: Blamed is then unavailable only in the
	// group.
	PlacementGroup string `json:"placementGroup,omitempty"`
	// Reservation is the id of the exhausted capacity reservation. Other capacity of Blamed is not affected.
	Reservation string `json:"reservation,omitempty"`
}

// LaunchSettled is the result of an intent: all of its instances, some, or none. An unknown outcome is never
// published; the launch is retried with the same token.
type LaunchSettled struct {
	Intent    string     `json:"intent"`
	Wanted    int        `json:"wanted"`
	Instances []Launched `json:"instances,omitempty"`
	Refusals  []Refusal  `json:"refusals,omitempty"`
	// Spent means that EC2 has stored this answer under the intent's token, so repeated requests can launch nothing
	// more. A refusal before EC2 stored the token (denied, invalid input) is not spent: its claims wait until the
	// last request has expired.
	Spent bool `json:"spent"`
}

func (LaunchSettled) EventType() Type { return LaunchSettledType }

// Key is the intent and its result, so that a later, more complete answer is another event.
func (b LaunchSettled) Key() []string {
	key := []string{b.Intent, strconv.FormatBool(b.Spent)}
	for _, i := range b.Instances {
		key = append(key, i.InstanceID)
	}
	for _, r := range b.Refusals {
		key = append(key, "refusal:"+r.Code)
	}
	// EC2 may return the same answer in another order.
	slices.Sort(key[2:])
	return key
}
func (b LaunchSettled) Subject() string { return "intent/" + b.Intent }

// Validate requires a result.
func (b LaunchSettled) Validate() error {
	switch {
	case b.Intent == "" || b.Wanted <= 0:
		return errors.New("intent and wanted are needed")
	case len(b.Instances)+len(b.Refusals) == 0:
		return errors.New("neither instances nor refusals: an unknown outcome is not settled")
	case len(b.Instances) > b.Wanted:
		return fmt.Errorf("%d instances for %d claims", len(b.Instances), b.Wanted)
	}
	for _, i := range b.Instances {
		if i.InstanceID == "" {
			return errors.New("an instance has no id")
		}
	}
	return checkRefusals(b.Refusals)
}

// The limits of refusals: a fleet has at most 300 overrides, and lifecycle writes the messages into annotations and
// conditions.
const (
	maxRefusals       = 300
	maxRefusalMessage = 4 << 10
)

// checkRefusals rejects more or longer refusals than one launch can have, and a refusal that blames an offering without any
// field, which would match all offerings.
func checkRefusals(refusals []Refusal) error {
	if len(refusals) > maxRefusals {
		return fmt.Errorf("%d refusals exceed the limit of %d", len(refusals), maxRefusals)
	}
	for _, r := range refusals {
		if len(r.Code)+len(r.Message) > maxRefusalMessage {
			return fmt.Errorf("a refusal of %d bytes exceeds the limit of %d", len(r.Code)+len(r.Message), maxRefusalMessage)
		}
		if r.Subnet == "" && r.Reservation == "" && slices.Contains(r.Blamed, Offering{}) {
			return fmt.Errorf("the refusal %s blames an offering without instance type, zone and capacity type", r.Code)
		}
	}
	return nil
}

// TerminateRequested requests the termination of an instance. Lifecycle persists the claim's deletion before it sends
// this, and sends it again while the finalizer exists.
type TerminateRequested struct {
	InstanceID string `json:"instanceId"`
	// ClaimUID is empty for an instance without a claim. Claim and Intent are then the instance's tags as far as
	// lifecycle knows, "" for none: the launcher does not terminate an instance with other tags.
	Claim    string `json:"claim,omitempty"`
	ClaimUID string `json:"claimUid,omitempty"`
	Intent   string `json:"intent,omitempty"`
	Reason   string `json:"reason"`
}

func (TerminateRequested) EventType() Type { return TerminateRequestedType }

// Key is the claim and the instance.
func (b TerminateRequested) Key() []string   { return []string{b.ClaimUID, b.InstanceID} }
func (b TerminateRequested) Subject() string { return "instance/" + b.InstanceID }

// Validate requires an instance.
func (b TerminateRequested) Validate() error {
	if b.InstanceID == "" {
		return errors.New("instanceId is missing")
	}
	return nil
}

// TagRequested requests the tags that an instance gets once its claim is known.
type TagRequested struct {
	InstanceID string            `json:"instanceId"`
	ClaimUID   string            `json:"claimUid"`
	Tags       map[string]string `json:"tags"`
}

func (TagRequested) EventType() Type { return TagRequestedType }

// Key is the claim, the instance and the tags.
func (b TagRequested) Key() []string {
	key := []string{b.ClaimUID, b.InstanceID}
	for k, v := range b.Tags {
		key = append(key, k+"="+v)
	}
	slices.Sort(key[2:])
	return key
}
func (b TagRequested) Subject() string { return "instance/" + b.InstanceID }

// Validate requires an instance, a claim and tags.
func (b TagRequested) Validate() error {
	if b.InstanceID == "" || b.ClaimUID == "" || len(b.Tags) == 0 {
		return errors.New("instanceId, claimUid and tags are needed")
	}
	return nil
}

// InventoryWanted requests a list of the existing instances.
type InventoryWanted struct {
	Asked time.Time `json:"asked"`
}

func (InventoryWanted) EventType() Type { return InventoryWantedType }

// Key is the time of the request.
func (b InventoryWanted) Key() []string { return []string{b.Asked.UTC().Format(time.RFC3339Nano)} }
func (InventoryWanted) Subject() string { return "inventory" }

// Validate requires a time.
func (b InventoryWanted) Validate() error {
	if b.Asked.IsZero() {
		return errors.New("asked is missing")
	}
	return nil
}

// InstancesListed publishes the existing instances. The list is always complete.
type InstancesListed struct {
	// Started is when the listing began; instances launched later may be missing.
	Started   time.Time `json:"started"`
	Inventory Ref       `json:"inventory"`
	Count     int       `json:"count"`
	// Shifts are the zonal shifts in force when the listing began. It is nil if zonal shifts are disabled or could
	// not be read, and empty without shifts.
	Shifts *ZonalShifts `json:"shifts,omitempty"`
}

// ZonalShifts are the zonal shifts in force at a time.
type ZonalShifts struct {
	Zones []ShiftedZone `json:"zones"`
}

// ShiftedZone is a zone from which the cluster is shifted away.
type ShiftedZone struct {
	// ZoneID is the zone's id, which is the same in every account.
	ZoneID string `json:"zoneId"`
	// Until is when the shift expires; zero if it does not.
	Until time.Time `json:"until,omitzero"`
}

func (InstancesListed) EventType() Type { return InstancesListedType }

// Key is when the listing began and the digest of its result.
func (b InstancesListed) Key() []string {
	return []string{b.Started.UTC().Format(time.RFC3339Nano), string(b.Inventory.Digest)}
}
func (InstancesListed) Subject() string  { return "inventory" }
func (b InstancesListed) Reference() Ref { return b.Inventory }

// Validate requires a start time and the document.
func (b InstancesListed) Validate() error {
	if b.Started.IsZero() {
		return errors.New("started is missing")
	}
	if b.Shifts != nil && slices.ContainsFunc(b.Shifts.Zones, func(z ShiftedZone) bool { return z.ZoneID == "" }) {
		return errors.New("a shifted zone has no zoneId")
	}
	return b.Inventory.ValidateKind(InventoryKind)
}

// InventoryKind is the folder of inventory documents.
const InventoryKind = "inventories"

// Inventory is the document that InstancesListed refers to.
type Inventory struct {
	Started   time.Time `json:"started"`
	Instances []Listed  `json:"instances"`
}

// Validate requires an id of each instance: a request to terminate an instance names it.
func (i Inventory) Validate() error {
	for n, one := range i.Instances {
		if one.InstanceID == "" {
			return fmt.Errorf("instance %d of the inventory has no instanceId", n+1)
		}
	}
	return nil
}

// Listed is one instance with the cluster's tags.
type Listed struct {
	InstanceID string    `json:"instanceId"`
	State      string    `json:"state"`
	Intent     string    `json:"intent,omitempty"`
	NodePool   string    `json:"nodePool,omitempty"`
	Claim      string    `json:"claim,omitempty"`
	Launched   time.Time `json:"launched"`
	ImageID    string    `json:"imageId,omitempty"`
	// Partition is the instance's partition in its placement group, from 1; 0 if it has none.
	Partition int32 `json:"partition,omitempty"`
	// The following fields are for drift detection. SubnetID is empty if the catalog is an older version, or if the
	// instance is terminated; then none of these fields is known.
	SubnetID string `json:"subnetId,omitempty"`
	// SecurityGroups are ids, sorted.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// Reservation is the id of the instance's capacity reservation, if any.
	Reservation string `json:"reservation,omitempty"`
	// PlacementGroup is the name of the instance's placement group, if any.
	PlacementGroup   string `json:"placementGroup,omitempty"`
	PlacementGroupID string `json:"placementGroupId,omitempty"`
	// Withdrawn means that the region no longer offers the instance's type, its capacity type, or anything in its
	// zone.
	Withdrawn bool `json:"withdrawn,omitempty"`
	Offering
}
