package config

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/topology"
)

// Config is one stack.
type Config struct {
	// StackName is CloudFormation's.
	StackName string
	// Partition is AWS's: aws, aws-cn or aws-us-gov. Region and Account are empty in a
	// stack that may be deployed anywhere.
	Partition, Region, Account string
	Clusters                   []Cluster
	// SharedFunctions says that there is one function of each service for all clusters,
	// which takes a cluster's role for what it does for that.
	SharedFunctions bool
	// Bucket is the name of the claim-check bucket, or none for
	// joist-<cluster>-<account>-<region>.
	Bucket string
	// Binaries is the folder of the functions: <service>/bootstrap.
	Binaries string
	// AlarmTopic is the ARN of the SNS topic that alarms are sent to, if any.
	AlarmTopic string
	// Subnets and SecurityGroups put the functions into a VPC.
	Subnets, SecurityGroups []string
	// Memory is that of functions in MB by services, in place of that of Sizes.
	Memory map[string]float64
	// Reserved is how many concurrent executions are reserved for the functions of a
	// service; a service that is not in it has none.
	Reserved map[string]int
	// SpotRole makes the account's service-linked role of EC2 spot.
	SpotRole bool
	Charts   Charts
}

// Charts are the Helm charts of what runs inside of the clusters.
type Charts struct {
	// Repository is where the charts are: a folder or an address that helm knows.
	Repository, Version string
	// Images is the registry and folder of the images, or empty for what the shell's
	// variable JOIST_IMAGES says.
	Images string
	// Install says that the stack installs them, from the folder Folder: KubectlRole is the ARN of a
	// role that may change the cluster, and KubectlLayer that of a Lambda layer with kubectl and helm.
	Install                           bool
	Folder, KubectlRole, KubectlLayer string
}

// Cluster is one EKS cluster.
type Cluster struct {
	// Name and UID are the cluster's; the UID is kube-system's and may be unknown.
	Name, UID string
	// Plan is what carries its events.
	Plan topology.Plan
	// Namespace is where watcher and lifecycle run.
	Namespace string
	// OIDCProvider is the ARN of the cluster's, for roles of service accounts; Pod
	// Identity gives them where it is empty.
	OIDCProvider string
	Node         Node
	Queue        ExistingQueue
	// Replayers are the ARNs of people's roles that may put messages back into queues.
	Replayers []string
	// ZonalShift keeps away from zones that a zonal shift moves the cluster away from, and
	// IsolatedVPC calls nobody but what has a VPC endpoint.
	ZonalShift, IsolatedVPC bool
	// CloudWatchMetrics is where the services inside of the cluster send their metrics for
	// CloudWatch, as settings.CloudWatch has it; empty is nowhere, and then the dashboard
	// and the alarms do without them.
	CloudWatchMetrics string
	// Environment is what all of the cluster's functions are told besides, by the names of
	// settings.Variables.
	Environment map[string]string
}

// Profiles says who makes instance profiles.
type Profiles string

// The modes of Profiles.
const (
	// ByRole is for node classes with spec.role: the launcher makes profiles.
	ByRole Profiles = "role"
	// ByInstanceProfile is for node classes with spec.instanceProfile: nobody does.
	ByInstanceProfile Profiles = "instanceProfile"
)

// Access says how nodes are let into the cluster.
type Access string

// The ways of Access.
const (
	AccessEntry Access = "accessEntry"
	AWSAuth     Access = "awsAuth"
	// ExistingAccess is for a role that the cluster knows already.
	ExistingAccess Access = "existing"
)

// Node is who nodes are.
type Node struct {
	// Role is the name of the nodes' role, without its path, and Existing says that it
	// is there.
	Role     string
	Existing bool
	// Profile is the name of the instance profile, and ProfileExisting says that it is
	// there.
	Profile         string
	ProfileExisting bool
	Profiles        Profiles
	Access          Access
	// Tags are the keys of spec.tags that node classes use, with * and ? in them, and
	// Parameters the names of SSM parameters that their ssmParameter terms name, and
	// Snapshots the ids of snapshots without the cluster's tag that their block devices name.
	Tags, Parameters, Snapshots []string
}

// ExistingQueue is what a queue of interruption events that was there before has.
type ExistingQueue struct {
	// Policy says that EventBridge may send to it, and Rules are the ids of the rules
	// (event.NoticeRules) that do.
	Policy bool
	Rules  []string
	// Visibility is the queue's visibility timeout. Lambda refuses a function that takes
	// longer.
	Visibility time.Duration
}
