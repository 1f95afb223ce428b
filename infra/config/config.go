package config

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/topology"
)

// Config is one stack.
type Config struct {
	// StackName is the name of the CloudFormation stack.
	StackName string
	// Partition is aws, aws-cn or aws-us-gov. Region and Account are empty if the template
	// may be deployed to any.
	Partition, Region, Account string
	Clusters                   []Cluster
	// SharedFunctions is set if all clusters share one function of each service. It assumes
	// the role of the cluster for which it works.
	SharedFunctions bool
	// Bucket is the name of the bucket; if empty it is joist-<cluster>-<account>-<region>.
	Bucket string
	// Binaries is the folder of the functions: <service>/bootstrap.
	Binaries string
	// AlarmTopic is the ARN of the SNS topic for alarms; empty for none.
	AlarmTopic string
	// Subnets and SecurityGroups put the functions into a VPC.
	Subnets, SecurityGroups []string
	// Memory overrides the memory in Sizes, in MB by service.
	Memory map[string]float64
	// Reserved is the reserved concurrency of functions by service; others reserve none.
	Reserved map[string]int
	// SpotRole is set if the stack creates the account's service-linked role for EC2 spot.
	SpotRole bool
	Charts   Charts
}

// Charts configures the Helm charts of the services inside the clusters.
type Charts struct {
	// Repository is the folder or URL of the charts.
	Repository, Version string
	// Images is the registry and folder of the images; if empty, the helm command uses the
	// shell's variable JOIST_IMAGES.
	Images string
	// Install is set if the stack installs the charts from Folder. KubectlRole is the ARN of a
	// role that may change the cluster, KubectlLayer that of a Lambda layer with kubectl and helm.
	Install                           bool
	Folder, KubectlRole, KubectlLayer string
}

// Cluster is one EKS cluster.
type Cluster struct {
	// Name is the cluster's name. UID is the UID of kube-system and may be empty.
	Name, UID string
	// Plan has the names of its queues, bus, rules and schedules.
	Plan topology.Plan
	// Namespace is the namespace of watcher and lifecycle.
	Namespace string
	// OIDCProvider is the ARN of the cluster's OIDC provider, for the roles of service
	// accounts. If it is empty, they use EKS Pod Identity.
	OIDCProvider string
	Node         Node
	Queue        ExistingQueue
	// Replayers are the ARNs of roles that may send messages back to queues.
	Replayers []string
	// ZonalShift avoids zones with an active zonal shift. IsolatedVPC calls only services that
	// have a VPC endpoint.
	ZonalShift, IsolatedVPC bool
	// RebootForRepair allows the launcher to reboot instances, for the feature gate of that name.
	RebootForRepair bool
	// CloudWatchMetrics is the target of CloudWatch metrics of watcher and lifecycle, as in
	// settings.CloudWatch. If it is empty, the dashboard and the alarms do not use them.
	CloudWatchMetrics string
	// Environment has further variables of the cluster's functions, from settings.Variables.
	Environment map[string]string
}

// Profiles says whether Joist creates instance profiles.
type Profiles string

// The modes of Profiles.
const (
	// ByRole is for node classes with spec.role: the launcher creates profiles.
	ByRole Profiles = "role"
	// ByInstanceProfile is for node classes with spec.instanceProfile: Joist creates none.
	ByInstanceProfile Profiles = "instanceProfile"
)

// Access says how nodes are authorized to join the cluster.
type Access string

// The ways of Access.
const (
	AccessEntry Access = "accessEntry"
	AWSAuth     Access = "awsAuth"
	// ExistingAccess is for a role that the cluster already authorizes.
	ExistingAccess Access = "existing"
)

// Node configures the nodes' role and instance profile.
type Node struct {
	// Role is the name of the nodes' role. RolePath is the path of an existing one without its
	// first slash, such as eks/. Only ARNs have it. Existing is set if the role exists.
	Role, RolePath string
	Existing       bool
	// WindowsRole is the name of the existing role of Windows nodes, after its path, or "" if
	// they have the same role.
	WindowsRole string
	// Profile is the name of the instance profile. ProfileExisting is set if it exists.
	Profile         string
	ProfileExisting bool
	Profiles        Profiles
	Access          Access
	// Tags are the keys in spec.tags of node classes, with * and ? as wildcards. Parameters are
	// the names of SSM parameters in their ssmParameter terms. Snapshots are the ids of
	// snapshots in their block devices that lack the cluster's tag.
	Tags, Parameters, Snapshots []string
}

// ExistingQueue describes an existing queue of interruption events.
type ExistingQueue struct {
	// Policy is set if its policy allows EventBridge to send. Rules are the ids of the existing
	// rules (event.NoticeRules).
	Policy bool
	Rules  []string
	// Visibility is the queue's visibility timeout. Lambda rejects a longer function timeout.
	Visibility time.Duration
}
