package event

import (
	"encoding/json"
	"errors"
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
	// Asked makes a periodic question a new one (B054).
	Asked time.Time `json:"asked"`
}

func (NodeClassChanged) EventType() Type { return NodeClassChangedType }

// Key is the object, its generation and when it was asked.
func (b NodeClassChanged) Key() []string {
	return []string{b.UID, strconv.FormatInt(b.Generation, 10), b.Asked.UTC().Format(time.RFC3339Nano)}
}
func (b NodeClassChanged) Subject() string { return "ec2nodeclass/" + b.Name }

// Validate demands an object with a spec.
func (b NodeClassChanged) Validate() error { return named(b.Name, b.UID, len(b.Spec) > 0) }

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

// Problem is why a part of an EC2NodeClass is not ready.
type Problem struct {
	// Condition is the status condition that it makes false ("SubnetsReady").
	Condition string `json:"condition"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
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
	Problems       []Problem       `json:"problems,omitempty"`
}

func (NodeClassResolved) EventType() Type { return NodeClassResolvedType }

// Key is the object, its generation and when it was asked.
func (b NodeClassResolved) Key() []string {
	return []string{b.UID, strconv.FormatInt(b.Generation, 10), b.Asked.UTC().Format(time.RFC3339Nano)}
}
func (b NodeClassResolved) Subject() string { return "ec2nodeclass/" + b.Name }

// Validate demands an object.
func (b NodeClassResolved) Validate() error { return named(b.Name, b.UID, true) }

// NodeClassEnsure asks for the instance profile of a node class that names a
// role (B197). Nothing is asked where it names an instance profile.
type NodeClassEnsure struct {
	Name    string            `json:"name"`
	UID     string            `json:"uid"`
	Role    string            `json:"role"`
	Profile string            `json:"profile"`
	Path    string            `json:"path"`
	Tags    map[string]string `json:"tags"`
	// Delete asks for the opposite: the node class is going away.
	Delete bool      `json:"delete,omitempty"`
	Asked  time.Time `json:"asked"`
}

func (NodeClassEnsure) EventType() Type { return NodeClassEnsureType }

// Key is the object, the role, the profile and when it was asked.
func (b NodeClassEnsure) Key() []string {
	return []string{b.UID, b.Role, b.Profile, strconv.FormatBool(b.Delete), b.Asked.UTC().Format(time.RFC3339Nano)}
}
func (b NodeClassEnsure) Subject() string { return "ec2nodeclass/" + b.Name }

// Validate demands an object and a profile.
func (b NodeClassEnsure) Validate() error { return named(b.Name, b.UID, b.Profile != "") }

// NodeClassEnsured says how that ended.
type NodeClassEnsured struct {
	Name    string    `json:"name"`
	UID     string    `json:"uid"`
	Role    string    `json:"role"`
	Profile string    `json:"profile"`
	Deleted bool      `json:"deleted,omitempty"`
	Problem *Problem  `json:"problem,omitempty"`
	Asked   time.Time `json:"asked"`
}

func (NodeClassEnsured) EventType() Type { return NodeClassEnsuredType }

// Key is the object, the profile, the outcome and when it was asked.
func (b NodeClassEnsured) Key() []string {
	return []string{b.UID, b.Role, b.Profile, strconv.FormatBool(b.Deleted), b.Asked.UTC().Format(time.RFC3339Nano)}
}
func (b NodeClassEnsured) Subject() string { return "ec2nodeclass/" + b.Name }

// Validate demands an object and a profile.
func (b NodeClassEnsured) Validate() error { return named(b.Name, b.UID, b.Profile != "") }

func named(name, uid string, rest bool) error {
	if name == "" || uid == "" || !rest {
		return errors.New("name, uid and the payload are needed")
	}
	return nil
}
