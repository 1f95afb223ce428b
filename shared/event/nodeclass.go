package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// NodeClassChanged asks the catalog to resolve an EC2NodeClass. Spec is the object's unmodified spec; only the
// catalog reads it.
type NodeClassChanged struct {
	Name       string          `json:"name"`
	UID        string          `json:"uid"`
	Generation int64           `json:"generation"`
	Spec       json.RawMessage `json:"spec"`
	// Expressions is the feature gate NodeClassCEL, and ReservedENIs is how many network interfaces of a node pods
	// must not use, on which the expressions of the kubelet's settings depend.
	Expressions  bool `json:"expressions,omitempty"`
	ReservedENIs int  `json:"reservedEnis,omitempty"`
	// Asked makes each periodic request a new message.
	Asked time.Time `json:"asked"`
}

func (NodeClassChanged) EventType() Type { return NodeClassChangedType }

// Key is the object, its generation and the time of the request.
func (b NodeClassChanged) Key() []string {
	return []string{b.UID, strconv.FormatInt(b.Generation, 10), b.Asked.UTC().Format(time.RFC3339Nano)}
}
func (b NodeClassChanged) Subject() string { return "ec2nodeclass/" + b.Name }

// Validate requires an object with a spec.
func (b NodeClassChanged) Validate() error { return checkObject(b.Name, b.UID, len(b.Spec) > 0) }

// Subnet is one resolved subnet.
type Subnet struct {
	ID     string `json:"id"`
	Zone   string `json:"zone"`
	ZoneID string `json:"zoneId,omitempty"`
	// FreeIPs is the number of free addresses at the time of the request.
	FreeIPs int `json:"freeIps"`
}

// SecurityGroup is one resolved security group.
type SecurityGroup struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// Image is one resolved AMI. Requirements define which instance types it can boot.
type Image struct {
	ID           string          `json:"id"`
	Name         string          `json:"name,omitempty"`
	Deprecated   bool            `json:"deprecated,omitempty"`
	Requirements json.RawMessage `json:"requirements,omitempty"`
}

// Problem is why a part of an EC2NodeClass is not ready, or, with Warning, a warning about a part that is ready.
type Problem struct {
	// Condition is the status condition that it makes false ("SubnetsReady").
	Condition string `json:"condition"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
	// Unread means that AWS could not be read (denied, throttled, unreachable): the previous status of the same spec
	// still applies.
	Unread bool `json:"unread,omitempty"`
	// Warning means that the condition stays true.
	Warning bool `json:"warning,omitempty"`
}

// Reservation is one resolved capacity reservation. Its remaining capacity is in the catalogue, because it changes
// with every launch.
type Reservation struct {
	ID            string `json:"id"`
	InstanceType  string `json:"instanceType"`
	Zone          string `json:"zone"`
	OwnerID       string `json:"ownerId"`
	MatchCriteria string `json:"matchCriteria"`
	// Kind is "default" or "capacity-block".
	Kind          string `json:"kind"`
	Interruptible bool   `json:"interruptible,omitempty"`
	// Expiring means that a capacity block is about to end.
	Expiring bool `json:"expiring,omitempty"`
	// Ends is zero for a reservation without an end.
	Ends time.Time `json:"ends,omitzero"`
}

// NodeClassResolved is the result of resolving an EC2NodeClass's selectors.
type NodeClassResolved struct {
	Name       string    `json:"name"`
	UID        string    `json:"uid"`
	Generation int64     `json:"generation"`
	Asked      time.Time `json:"asked"`
	// Read is when the catalog began to read AWS. It is zero in messages of older releases.
	Read           time.Time       `json:"read,omitzero"`
	Subnets        []Subnet        `json:"subnets,omitempty"`
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`
	Images         []Image         `json:"images,omitempty"`
	Reservations   []Reservation   `json:"reservations,omitempty"`
	// Hash is the drift hash of the spec in this cluster; empty if the cluster could not be read.
	Hash string `json:"hash,omitempty"`
	// HashVersion is the version of Hash; hashes of different versions cannot be compared. Lifecycle does not write a
	// hash of another version than its own, which a catalog of another release computed.
	HashVersion string    `json:"hashVersion,omitempty"`
	Problems    []Problem `json:"problems,omitempty"`
}

func (NodeClassResolved) EventType() Type { return NodeClassResolvedType }

// Key is the object, its generation, the time of the request and the conditions that could not be read, so that a
// complete answer differs from an incomplete one.
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

// Validate requires an object, the id and zone of each subnet, and the id of each security group and image: a plan
// cannot launch without them.
func (b NodeClassResolved) Validate() error {
	if i := slices.IndexFunc(b.Subnets, func(s Subnet) bool { return s.ID == "" || s.Zone == "" }); i >= 0 {
		return fmt.Errorf("subnets[%d] has the id %q and the zone %q; both are needed", i, b.Subnets[i].ID, b.Subnets[i].Zone)
	}
	if i := slices.IndexFunc(b.SecurityGroups, func(g SecurityGroup) bool { return g.ID == "" }); i >= 0 {
		return fmt.Errorf("securityGroups[%d] has no id", i)
	}
	if i := slices.IndexFunc(b.Images, func(i Image) bool { return i.ID == "" }); i >= 0 {
		return fmt.Errorf("images[%d] has no id", i)
	}
	return checkObject(b.Name, b.UID, true)
}

// NodeClassEnsure requests the instance profile of a node class with a role, and dry runs of the calls of its
// launches.
//
// Role is empty if the class names its own instance profile. Then the launcher makes no IAM call for it.
type NodeClassEnsure struct {
	Name    string            `json:"name"`
	UID     string            `json:"uid"`
	Role    string            `json:"role"`
	Profile string            `json:"profile"`
	Path    string            `json:"path"`
	Tags    map[string]string `json:"tags"`
	// Former is the profile that Joist created for a role which the class had before it named its own profile. The
	// launcher deletes it once no instance needs it. If both Former and Role are empty, the launcher makes no IAM
	// call.
	Former string `json:"former,omitempty"`
	// Generation is the object's generation at the time of the request; the answer repeats it.
	Generation int64 `json:"generation,omitempty"`
	// Class is the EC2NodeClass with its spec and resolved status, for dry runs. It is absent if a part is not
	// resolved yet, or if the settings disable dry runs.
	Class json.RawMessage `json:"class,omitempty"`
	// Tenancy is "dedicated" if a NodePool of the class allows dedicated instances: the dry runs then request it.
	// Empty is the default tenancy.
	Tenancy string `json:"tenancy,omitempty"`
	// InstanceType is the type of the dry runs, which the NodePools of the class allow. The status of Class then has
	// only the image of the type, and the subnets in zones that offer it. Empty means that of DryRunType.
	InstanceType string `json:"instanceType,omitempty"`
	// Delete requests the deletion of the class's profile (if Role or Former is set) and launch templates, because
	// the class is being deleted.
	Delete bool      `json:"delete,omitempty"`
	Asked  time.Time `json:"asked"`
}

func (NodeClassEnsure) EventType() Type { return NodeClassEnsureType }

// Key is the object, the role, the profile, Delete and the time of the request.
func (b NodeClassEnsure) Key() []string {
	return []string{b.UID, b.Role, b.Profile, strconv.FormatBool(b.Delete), b.Asked.UTC().Format(time.RFC3339Nano)}
}
func (b NodeClassEnsure) Subject() string { return "ec2nodeclass/" + b.Name }

// Validate requires an object, a profile and a known tenancy.
func (b NodeClassEnsure) Validate() error {
	if b.Tenancy != "" && b.Tenancy != dedicated {
		return fmt.Errorf("unknown tenancy %q (use %s, or leave it out)", b.Tenancy, dedicated)
	}
	return checkObject(b.Name, b.UID, b.Profile != "")
}

// DryRunType returns the instance type of dry runs for which no other one is known, by the architecture of the image. Not
// every region offers it. It is Karpenter's: pkg/controllers/nodeclass/validation.go, getFallbackInstanceTypes.
func DryRunType(arch string) string {
	if arch == "arm64" {
		return "m6g.large"
	}
	return "m5.large"
}

// dedicated is the only tenancy that is named.
const dedicated = "dedicated"

// Reasons why ValidationSucceeded is false. The launcher reports those of the dry runs, lifecycle those of shared GPUs,
// and the catalog the others.
const (
	CreateFleetAuthCheckFailed          = "CreateFleetAuthCheckFailed"
	CreateLaunchTemplateAuthCheckFailed = "CreateLaunchTemplateAuthCheckFailed"
	RunInstancesAuthCheckFailed         = "RunInstancesAuthCheckFailed"
	InstanceProfileNotFound             = "InstanceProfileNotFound"
	DependenciesNotReady                = "DependenciesNotReady"
	TagValidationFailed                 = "TagValidationFailed"
	UserDataSizeLimitExceeded           = "UserDataSizeLimitExceeded"
	ClusterCIDRResolutionFailed         = "ClusterCIDRResolutionFailed"
	InvalidKubeletConfiguration         = "InvalidKubeletConfiguration"
	KubeletExpressionInvalid            = "KubeletExpressionInvalid"
	KubeletExpressionEvaluationFailed   = "KubeletExpressionEvaluationFailed"
	KubeletExpressionsDisabled          = "KubeletExpressionsDisabled"
	UnsupportedKubeletConfiguration     = "UnsupportedKubeletConfiguration"
	NVIDIAConsumableCapacityInvalid     = "NVIDIAConsumableCapacityInvalid"
	DRADisabled                         = "DRADisabled"
)

// NodeClassEnsured is the result of NodeClassEnsure.
type NodeClassEnsured struct {
	Name    string `json:"name"`
	UID     string `json:"uid"`
	Role    string `json:"role"`
	Profile string `json:"profile"`
	// Generation is that of the request, or 0 if it had none.
	Generation int64 `json:"generation,omitempty"`
	Deleted    bool  `json:"deleted,omitempty"`
	// Retired means that Former's profile no longer exists.
	Retired bool `json:"retired,omitempty"`
	// Problem is the problem with the profile, or with the deletion.
	Problem *Problem `json:"problem,omitempty"`
	// Validated means that the dry runs gave a definite answer: Invalid is what they refused, nil if nothing. A dry
	// run that was throttled or timed out is not definite, and is requested again.
	Validated bool      `json:"validated,omitempty"`
	Invalid   *Problem  `json:"invalid,omitempty"`
	Asked     time.Time `json:"asked"`
}

func (NodeClassEnsured) EventType() Type { return NodeClassEnsuredType }

// Key is the object, the role, the profile, Deleted and the time of the request.
func (b NodeClassEnsured) Key() []string {
	return []string{b.UID, b.Role, b.Profile, strconv.FormatBool(b.Deleted), b.Asked.UTC().Format(time.RFC3339Nano)}
}
func (b NodeClassEnsured) Subject() string { return "ec2nodeclass/" + b.Name }

// Validate requires an object and a profile.
func (b NodeClassEnsured) Validate() error { return checkObject(b.Name, b.UID, b.Profile != "") }

func checkObject(name, uid string, rest bool) error {
	if name == "" || uid == "" || !rest {
		return errors.New("name, uid and the payload are needed")
	}
	if len(name) > maxObjectName || len(uid) > maxObjectName {
		return fmt.Errorf("name has %d bytes and uid %d, and the limit is %d", len(name), len(uid), maxObjectName)
	}
	return nil
}

// maxObjectName is the maximum length of an object's name in Kubernetes. An answer about a node class repeats the name.
const maxObjectName = 253
