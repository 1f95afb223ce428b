package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// NodeClassChanged asks the catalog to resolve an EC2NodeClass. Spec is the
// object's spec as it is; only the catalog reads it.
type NodeClassChanged struct {
	Name       string          `json:"name"`
	UID        string          `json:"uid"`
	Generation int64           `json:"generation"`
	Spec       json.RawMessage `json:"spec"`
	// Asked makes a periodic question a new one.
	Asked time.Time `json:"asked"`
}

func (NodeClassChanged) EventType() Type { return NodeClassChangedType }

// Key is the object, its generation and when it was asked.
func (b NodeClassChanged) Key() []string {
	return []string{b.UID, strconv.FormatInt(b.Generation, 10), b.Asked.UTC().Format(time.RFC3339Nano)}
}
func (b NodeClassChanged) Subject() string { return "ec2nodeclass/" + b.Name }

// Validate demands an object with a spec.
func (b NodeClassChanged) Validate() error { return checkObject(b.Name, b.UID, len(b.Spec) > 0) }

// Subnet is one resolved subnet.
type Subnet struct {
	ID     string `json:"id"`
	Zone   string `json:"zone"`
	ZoneID string `json:"zoneId,omitempty"`
	// FreeIPs is how many addresses were free when it was asked.
	FreeIPs int `json:"freeIps"`
}

// SecurityGroup is one resolved security group.
type SecurityGroup struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// Image is one resolved AMI. Requirements say which types it boots.
type Image struct {
	ID           string          `json:"id"`
	Name         string          `json:"name,omitempty"`
	Deprecated   bool            `json:"deprecated,omitempty"`
	Requirements json.RawMessage `json:"requirements,omitempty"`
}

// Problem is why a part of an EC2NodeClass is not ready, or, with Warning, what
// is odd about one that is.
type Problem struct {
	// Condition is the status condition that it makes false ("SubnetsReady").
	Condition string `json:"condition"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
	// Unread says that AWS did not answer (denied, throttled, unreachable), so that
	// nothing new is known: what was known of the same spec still holds.
	Unread bool `json:"unread,omitempty"`
	// Warning says that the condition is true all the same.
	Warning bool `json:"warning,omitempty"`
}

// Reservation is one resolved capacity reservation. How much of it is left
// is in the catalogue, for that changes with every launch.
type Reservation struct {
	ID            string `json:"id"`
	InstanceType  string `json:"instanceType"`
	Zone          string `json:"zone"`
	OwnerID       string `json:"ownerId"`
	MatchCriteria string `json:"matchCriteria"`
	// Kind is "default" or "capacity-block".
	Kind          string `json:"kind"`
	Interruptible bool   `json:"interruptible,omitempty"`
	// Expiring says that a capacity block is about to end.
	Expiring bool `json:"expiring,omitempty"`
	// Ends is zero for a reservation without an end.
	Ends time.Time `json:"ends,omitzero"`
}

// NodeClassResolved says what an EC2NodeClass's selectors find.
type NodeClassResolved struct {
	Name           string          `json:"name"`
	UID            string          `json:"uid"`
	Generation     int64           `json:"generation"`
	Asked          time.Time       `json:"asked"`
	Subnets        []Subnet        `json:"subnets,omitempty"`
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`
	Images         []Image         `json:"images,omitempty"`
	Reservations   []Reservation   `json:"reservations,omitempty"`
	// Hash is the drift hash of the spec in this cluster; empty when the
	// cluster could not be read.
	Hash     string    `json:"hash,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
}

func (NodeClassResolved) EventType() Type { return NodeClassResolvedType }

// Key is the object, its generation, when it was asked, and what AWS would not
// tell: an answer that is whole is another than one that was not.
func (b NodeClassResolved) Key() []string {
	key := []string{b.UID, strconv.FormatInt(b.Generation, 10), b.Asked.UTC().Format(time.RFC3339Nano)}
	for _, p := range b.Problems {
		if p.Unread {
			key = append(key, p.Condition)
		}
	}
	return key
}
func (b NodeClassResolved) Subject() string { return "ec2nodeclass/" + b.Name }

// Validate demands an object.
func (b NodeClassResolved) Validate() error { return checkObject(b.Name, b.UID, true) }

// NodeClassEnsure asks for the instance profile of a node class that names a
// role, and for dry runs of what its launches will call.
//
// Role is empty where the class names an instance profile of its own: then no
// IAM call may be made, and the message asks for the rest alone.
type NodeClassEnsure struct {
	Name    string            `json:"name"`
	UID     string            `json:"uid"`
	Role    string            `json:"role"`
	Profile string            `json:"profile"`
	Path    string            `json:"path"`
	Tags    map[string]string `json:"tags"`
	// Former is the profile that was made for a role which the class named before it
	// brought a profile of its own: what was made for the class is then removed, once
	// nothing needs it. Empty, and Role too, nothing in IAM is looked at.
	Former string `json:"former,omitempty"`
	// Generation is the object's when this was asked; the answer repeats it.
	Generation int64 `json:"generation,omitempty"`
	// Class is the EC2NodeClass with its spec and its resolved status, for which dry
	// runs are wanted; absent where none are: something is not resolved yet, or the
	// settings disable them.
	Class json.RawMessage `json:"class,omitempty"`
	// Tenancy is "dedicated" where a NodePool of the class allows dedicated instances:
	// the dry runs ask for it. Empty is the default tenancy.
	Tenancy string `json:"tenancy,omitempty"`
	// Delete asks for the opposite: the node class is going away, and with it its
	// profile (where Role or Former is set) and its launch templates.
	Delete bool      `json:"delete,omitempty"`
	Asked  time.Time `json:"asked"`
}

func (NodeClassEnsure) EventType() Type { return NodeClassEnsureType }

// Key is the object, the role, the profile and when it was asked.
func (b NodeClassEnsure) Key() []string {
	return []string{b.UID, b.Role, b.Profile, strconv.FormatBool(b.Delete), b.Asked.UTC().Format(time.RFC3339Nano)}
}
func (b NodeClassEnsure) Subject() string { return "ec2nodeclass/" + b.Name }

// Validate demands an object, a profile and a known tenancy.
func (b NodeClassEnsure) Validate() error {
	if b.Tenancy != "" && b.Tenancy != dedicated {
		return fmt.Errorf("unknown tenancy %q (use %s, or leave it out)", b.Tenancy, dedicated)
	}
	return checkObject(b.Name, b.UID, b.Profile != "")
}

// dedicated is the one tenancy that has to be named.
const dedicated = "dedicated"

// Reasons for which ValidationSucceeded is false. The launcher says
// those of the dry runs, the catalog the others.
const (
	CreateFleetAuthCheckFailed          = "CreateFleetAuthCheckFailed"
	CreateLaunchTemplateAuthCheckFailed = "CreateLaunchTemplateAuthCheckFailed"
	RunInstancesAuthCheckFailed         = "RunInstancesAuthCheckFailed"
	DependenciesNotReady                = "DependenciesNotReady"
	TagValidationFailed                 = "TagValidationFailed"
	UserDataSizeLimitExceeded           = "UserDataSizeLimitExceeded"
	ClusterCIDRResolutionFailed         = "ClusterCIDRResolutionFailed"
)

// NodeClassEnsured says how that ended.
type NodeClassEnsured struct {
	Name    string `json:"name"`
	UID     string `json:"uid"`
	Role    string `json:"role"`
	Profile string `json:"profile"`
	// Generation is that of the question; 0 says that it was not given.
	Generation int64 `json:"generation,omitempty"`
	Deleted    bool  `json:"deleted,omitempty"`
	// Retired says that nothing is left of what Former asked to be removed.
	Retired bool `json:"retired,omitempty"`
	// Problem is what is wrong with the profile, or with the deletion.
	Problem *Problem `json:"problem,omitempty"`
	// Validated says that the dry runs were made and gave a definite answer: Invalid
	// is what they refused, nil when they refused nothing. A dry run that was
	// throttled or timed out is neither, and is asked for again.
	Validated bool      `json:"validated,omitempty"`
	Invalid   *Problem  `json:"invalid,omitempty"`
	Asked     time.Time `json:"asked"`
}

func (NodeClassEnsured) EventType() Type { return NodeClassEnsuredType }

// Key is the object, the profile, the outcome and when it was asked.
func (b NodeClassEnsured) Key() []string {
	return []string{b.UID, b.Role, b.Profile, strconv.FormatBool(b.Deleted), b.Asked.UTC().Format(time.RFC3339Nano)}
}
func (b NodeClassEnsured) Subject() string { return "ec2nodeclass/" + b.Name }

// Validate demands an object and a profile.
func (b NodeClassEnsured) Validate() error { return checkObject(b.Name, b.UID, b.Profile != "") }

func checkObject(name, uid string, rest bool) error {
	if name == "" || uid == "" || !rest {
		return errors.New("name, uid and the payload are needed")
	}
	return nil
}
