package event

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// LaunchRequested asks the launcher to obey one intent. It is sent again with
// the same id until the claims are settled; EC2's ClientToken derives from the
// intent's id, so that many requests are one launch.
type LaunchRequested struct {
	// Intent is the id of the intent, and IntentRef where it is written down.
	Intent    string `json:"intent"`
	IntentRef Ref    `json:"intentRef"`
	// Claims is how many NodeClaims share the fleet call.
	Claims int `json:"claims"`
}

func (LaunchRequested) EventType() Type { return LaunchRequestedType }

// Key is the intent.
func (b LaunchRequested) Key() []string   { return []string{b.Intent} }
func (b LaunchRequested) Subject() string { return "intent/" + b.Intent }
func (b LaunchRequested) Reference() Ref  { return b.IntentRef }

// Validate demands an intent that can be read.
func (b LaunchRequested) Validate() error {
	if b.Intent == "" || b.Claims <= 0 {
		return errors.New("intent and claims are needed")
	}
	return b.IntentRef.ValidateKind(IntentKind)
}

// Offering is what EC2 sells: a type in a zone under a capacity type. An empty
// field means all of them.
type Offering struct {
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
}

// Launched is one instance that a fleet call gave.
type Launched struct {
	InstanceID string `json:"instanceId"`
	Offering
	ImageID string `json:"imageId,omitempty"`
}

// Refusal is one definite reason why an intent got fewer instances than it
// asked for.
type Refusal struct {
	// Code is EC2's error code ("InsufficientInstanceCapacity").
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	// Blamed lists what to leave alone for a while. Only a shortage blames;
	// throttling, denial and invalid input say nothing about an offering.
	Blamed []Offering `json:"blamed,omitempty"`
	// Subnet is set when the shortage is of addresses in it. Blamed has its zone
	// then, in which another subnet may have some.
	Subnet string `json:"subnet,omitempty"`
	// PlacementGroup is set where the launch was into one, by its id or its name:
	// what is blamed is short within the group, and elsewhere there may be plenty.
	PlacementGroup string `json:"placementGroup,omitempty"`
	// Reservation is the id of the capacity reservation that is short; what else is
	// sold of Blamed is not.
	Reservation string `json:"reservation,omitempty"`
}

// LaunchSettled tells how an intent ended: all of its instances, some, or none.
// An unknown outcome is never published; it is asked again under the same token.
type LaunchSettled struct {
	Intent    string     `json:"intent"`
	Wanted    int        `json:"wanted"`
	Instances []Launched `json:"instances,omitempty"`
	Refusals  []Refusal  `json:"refusals,omitempty"`
	// Spent says that EC2 has remembered this answer under the intent's token,
	// so that no copy of the request can launch any more. A refusal that came
	// before EC2 took the token (denial, invalid input) is not spent, and its
	// claims wait out the life of the last request.
	Spent bool `json:"spent"`
}

func (LaunchSettled) EventType() Type { return LaunchSettledType }

// Key is the intent and what became of it, so that a later, fuller answer is
// another event.
func (b LaunchSettled) Key() []string {
	key := []string{b.Intent, strconv.FormatBool(b.Spent)}
	for _, i := range b.Instances {
		key = append(key, i.InstanceID)
	}
	for _, r := range b.Refusals {
		key = append(key, "refusal:"+r.Code)
	}
	// EC2 may tell the same answer in another order.
	slices.Sort(key[2:])
	return key
}
func (b LaunchSettled) Subject() string { return "intent/" + b.Intent }

// Validate demands an outcome.
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

// The bounds of refusals: a fleet has at most 300 overrides, and lifecycle writes the
// messages into annotations and conditions.
const (
	maxRefusals       = 300
	maxRefusalMessage = 4 << 10
)

// checkRefusals refuses more or longer refusals than one launch can have.
func checkRefusals(refusals []Refusal) error {
	if len(refusals) > maxRefusals {
		return fmt.Errorf("%d refusals exceed the limit of %d", len(refusals), maxRefusals)
	}
	for _, r := range refusals {
		if len(r.Code)+len(r.Message) > maxRefusalMessage {
			return fmt.Errorf("a refusal of %d bytes exceeds the limit of %d", len(r.Code)+len(r.Message), maxRefusalMessage)
		}
	}
	return nil
}

// TerminateRequested asks for an instance to be ended. The claim's deletion is
// persisted before it is sent, and it is sent again while the finalizer stands.
type TerminateRequested struct {
	InstanceID string `json:"instanceId"`
	// ClaimUID is empty for an instance that no claim stands for. Then Claim and Intent
	// are the tags that the instance carries as far as lifecycle knows, "" for none: the
	// launcher ends no instance that carries others.
	Claim    string `json:"claim,omitempty"`
	ClaimUID string `json:"claimUid,omitempty"`
	Intent   string `json:"intent,omitempty"`
	Reason   string `json:"reason"`
}

func (TerminateRequested) EventType() Type { return TerminateRequestedType }

// Key is the claim and the instance.
func (b TerminateRequested) Key() []string   { return []string{b.ClaimUID, b.InstanceID} }
func (b TerminateRequested) Subject() string { return "instance/" + b.InstanceID }

// Validate demands an instance.
func (b TerminateRequested) Validate() error {
	if b.InstanceID == "" {
		return errors.New("instanceId is missing")
	}
	return nil
}

// TagRequested asks for the tags that only a bound claim can have.
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

// Validate demands an instance and tags.
func (b TagRequested) Validate() error {
	if b.InstanceID == "" || b.ClaimUID == "" || len(b.Tags) == 0 {
		return errors.New("instanceId, claimUid and tags are needed")
	}
	return nil
}

// InventoryWanted asks which instances exist.
type InventoryWanted struct {
	Asked time.Time `json:"asked"`
}

func (InventoryWanted) EventType() Type { return InventoryWantedType }

// Key is when it was asked.
func (b InventoryWanted) Key() []string { return []string{b.Asked.UTC().Format(time.RFC3339Nano)} }
func (InventoryWanted) Subject() string { return "inventory" }

// Validate demands a time.
func (b InventoryWanted) Validate() error {
	if b.Asked.IsZero() {
		return errors.New("asked is missing")
	}
	return nil
}

// InstancesListed says what exists. It is complete or not said at all.
type InstancesListed struct {
	// Started is when the listing began: what was launched later may be absent.
	Started   time.Time `json:"started"`
	Inventory Ref       `json:"inventory"`
	Count     int       `json:"count"`
	// Shifts are the zones that the cluster was kept away from when the listing began.
	// It is nil where nobody asks, or nobody could be asked; and not nil
	// and empty where there are none.
	Shifts *ZonalShifts `json:"shifts,omitempty"`
}

// ZonalShifts are the zonal shifts in force at a time.
type ZonalShifts struct {
	Zones []ShiftedZone `json:"zones"`
}

// ShiftedZone is a zone that the cluster is kept away from.
type ShiftedZone struct {
	// ZoneID is the zone's id, which means the same in every account.
	ZoneID string `json:"zoneId"`
	// Until is when the shift ends by itself; zero where it does not.
	Until time.Time `json:"until,omitzero"`
}

func (InstancesListed) EventType() Type { return InstancesListedType }

// Key is when the listing began and what it found.
func (b InstancesListed) Key() []string {
	return []string{b.Started.UTC().Format(time.RFC3339Nano), string(b.Inventory.Digest)}
}
func (InstancesListed) Subject() string  { return "inventory" }
func (b InstancesListed) Reference() Ref { return b.Inventory }

// Validate demands a beginning and the document.
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

// Inventory is the document that instances.listed refers to.
type Inventory struct {
	Started   time.Time `json:"started"`
	Instances []Listed  `json:"instances"`
}

// Listed is one instance that carries the cluster's tags.
type Listed struct {
	InstanceID string    `json:"instanceId"`
	State      string    `json:"state"`
	Intent     string    `json:"intent,omitempty"`
	NodePool   string    `json:"nodePool,omitempty"`
	Claim      string    `json:"claim,omitempty"`
	Launched   time.Time `json:"launched"`
	ImageID    string    `json:"imageId,omitempty"`
	// Partition is the one of its placement group that it is in, from 1; 0 for an
	// instance that is in none.
	Partition int32 `json:"partition,omitempty"`
	// What follows is what drift is seen by. SubnetID is empty in a list by a
	// catalog that did not tell yet, and of an instance that is terminated: then
	// nothing of it is known.
	SubnetID string `json:"subnetId,omitempty"`
	// SecurityGroups are ids, sorted.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// Reservation is the id of the capacity reservation that it runs in, if any.
	Reservation string `json:"reservation,omitempty"`
	// PlacementGroup is the name of the group that it is in, if any.
	PlacementGroup   string `json:"placementGroup,omitempty"`
	PlacementGroupID string `json:"placementGroupId,omitempty"`
	// Withdrawn says that the region does not sell the instance's type any more, or
	// not by its capacity type, or nothing in its zone.
	Withdrawn bool `json:"withdrawn,omitempty"`
	Offering
}
