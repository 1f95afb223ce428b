// Package cloud is Joist's interface to EC2 and related AWS calls (SSM, IAM, EKS): small types, and small interfaces
// that match the callers' permissions.
//
// The launcher writes (Launcher, Profiles); the catalog and interruption read (the others). cloudtest tests these
// invariants for every implementation:
//
//   - CreateFleet with a ClientToken that EC2 has seen returns the first answer
//     again, including failures; the same token with another body is
//     fault.Conflict, which does not tell whether there was a launch.
//   - CreateFleet may return fewer instances than requested, with errors in the result.
//   - A new resource may be missing in a Describe for a while.
//   - Terminate is idempotent.
//
// Errors: fault.Throttled if nothing was done because of the rate limit; fault.Denied; fault.Invalid for a request
// that EC2 rejects; fault.Missing for names that do not exist; fault.Unknown if a write may or may not have happened.
package cloud

import (
	"context"
	"strings"
	"time"
)

// State is the state of an instance, in EC2's spelling.
type State string

// The states of an instance.
const (
	Pending      State = "pending"
	Running      State = "running"
	ShuttingDown State = "shutting-down"
	Stopping     State = "stopping"
	Stopped      State = "stopped"
	Terminated   State = "terminated"
)

// Gone reports whether the instance is terminated.
func (s State) Gone() bool { return s == Terminated }

// Instance is EC2's description of one instance.
type Instance struct {
	ID           string    `json:"id"`
	Type         string    `json:"type"`
	Zone         string    `json:"zone"`
	CapacityType string    `json:"capacityType"`
	State        State     `json:"state"`
	ImageID      string    `json:"imageId,omitempty"`
	SubnetID     string    `json:"subnetId,omitempty"`
	PrivateDNS   string    `json:"privateDns,omitempty"`
	Launched     time.Time `json:"launched"`
	// Profile is the name of its instance profile.
	Profile string `json:"profile,omitempty"`
	// Partition is its partition in its placement group, from 1; 0 if it has none.
	Partition int32 `json:"partition,omitempty"`
	// PlacementGroup and PlacementGroupID are the name and id of its placement group.
	PlacementGroup   string `json:"placementGroup,omitempty"`
	PlacementGroupID string `json:"placementGroupId,omitempty"`
	// SecurityGroups are the ids of its first network interface's groups.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// Reservation is the id of its capacity reservation.
	Reservation string            `json:"reservation,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
}

// InstanceFilter selects instances; empty fields match all. All tags must match; a tag with an empty value requires
// only the key.
type InstanceFilter struct {
	IDs    []string
	Tags   map[string]string
	States []State
}

// Instances reads instances.
type Instances interface {
	// DescribeInstances reads all pages. It omits unknown ids instead of failing.
	DescribeInstances(ctx context.Context, filter InstanceFilter) ([]Instance, error)
}

// Launcher writes instances and launch templates.
type Launcher interface {
	Instances
	// EnsureTemplate creates the launch template unless its name exists; names are derived from content, so an
	// existing one is equal.
	EnsureTemplate(ctx context.Context, template Template) error
	// Templates returns the launch templates that have all of the tags.
	Templates(ctx context.Context, tags map[string]string) ([]TemplateInfo, error)
	// DeleteTemplate deletes a template; a missing one is not an error.
	DeleteTemplate(ctx context.Context, name string) error
	// CreateFleet requests instances synchronously (type instant).
	CreateFleet(ctx context.Context, request FleetRequest) (FleetResult, error)
	// Terminate terminates instances. It ignores unknown ids. If EC2 rejects one id for another reason, such as
	// termination protection, any of the others may not be terminated: a caller with a batch then retries them one by
	// one.
	Terminate(ctx context.Context, ids []string) error
	// Reboot reboots a running instance; fault.Missing for an unknown id, fault.Rejected in another state. A repeated
	// call reboots it again.
	Reboot(ctx context.Context, id string) error
	// Tag sets tags on instances.
	Tag(ctx context.Context, ids []string, tags map[string]string) error
}

// Network reads subnets and security groups.
type Network interface {
	DescribeSubnets(ctx context.Context, selectors []Selector) ([]Subnet, error)
	DescribeSecurityGroups(ctx context.Context, selectors []Selector) ([]SecurityGroup, error)
}

// Images reads AMIs and the SSM parameters with their ids.
type Images interface {
	// DescribeImages returns the AMIs that match any selector.
	DescribeImages(ctx context.Context, selectors []Selector) ([]Image, error)
	// Parameter reads one SSM parameter; fault.Missing if it does not exist.
	Parameter(ctx context.Context, name string) (string, error)
}

// Clusters reads EKS.
type Clusters interface {
	// DescribeCluster returns the cluster's properties that nodes need to join.
	DescribeCluster(ctx context.Context, name string) (ClusterInfo, error)
}

// Profiles reads and writes IAM instance profiles.
type Profiles interface {
	// Profile reads a profile; fault.Missing if it does not exist.
	Profile(ctx context.Context, name string) (Profile, error)
	// ListProfiles lists the profiles below a path, without tags, which IAM omits.
	ListProfiles(ctx context.Context, path string) ([]Profile, error)
	// TagProfile adds or replaces tags.
	TagProfile(ctx context.Context, name string, tags map[string]string) error
	// EnsureProfile creates or updates the profile so that it has the tags and exactly the role.
	EnsureProfile(ctx context.Context, profile Profile) error
	// DeleteProfile deletes it; a missing one is not an error.
	DeleteProfile(ctx context.Context, name string) error
}

// Statuses reads instance status checks and scheduled events.
type Statuses interface {
	// DescribeStatus returns the running instances of the account that are impaired or have scheduled events, each once.
	DescribeStatus(ctx context.Context) ([]Status, error)
}

// Selector is one term that selects resources: all its fields must match, and any of several selectors. Tag values
// and Name may contain the wildcards * and ?. An empty selector matches nothing.
type Selector struct {
	// Any matches everything; the other fields are ignored.
	Any   bool
	ID    string
	Name  string
	Owner string
	Tags  map[string]string
}

// Subnet is one subnet.
type Subnet struct {
	ID, Zone, ZoneID, VPC string
	FreeIPs               int
	Tags                  map[string]string
}

// SecurityGroup is one security group.
type SecurityGroup struct {
	ID, Name string
	Tags     map[string]string
}

// Image is one AMI.
type Image struct {
	ID, Name, Owner string
	// Arch is in Kubernetes' spelling: amd64 or arm64.
	Arch       string
	Created    time.Time
	Deprecated bool
	Tags       map[string]string
}

// ClusterInfo has the cluster's properties that nodes need.
type ClusterInfo struct {
	Name, ARN, Endpoint string
	// CABundle is the base64 of the PEM certificates.
	CABundle    string
	ServiceCIDR string
	Version     string
}

// Profile is an IAM instance profile.
type Profile struct {
	Name, Path string
	// Role is a name. In EnsureProfile it may have a path, which is removed because IAM rejects it.
	Role string
	Tags map[string]string
	// Created is ignored in EnsureProfile.
	Created time.Time
}

// RoleName returns the name of a role without its path.
func RoleName(role string) string { return role[strings.LastIndex(role, "/")+1:] }

// Status is the result of an instance's status checks.
type Status struct {
	InstanceID string
	// Impaired is since when the instance or system check fails; zero if neither does.
	Impaired time.Time
	// Undated means that a check fails and EC2 does not report since when.
	Undated bool
	// Events are the scheduled events that are not completed.
	Events []ScheduledEvent
}

// ScheduledEvent is maintenance that AWS has scheduled.
type ScheduledEvent struct {
	Code      string
	NotBefore time.Time
}
