package config

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Karpenter set-ups that the stack can adopt.
const (
	// cloudFormation is the template of Karpenter's getting-started guide: a queue of the cluster's name
	// with its policy and four rules, and the nodes' role.
	cloudFormation = "cloudformation"
	// terraform is a set-up by Terraform tutorials: a queue without policy and rules,
	// and the nodes' role.
	terraform = "terraform"
)

// karpenterRules are the rules in Karpenter's CloudFormation template; newer versions of it have a fifth.
var karpenterRules = []string{"ScheduledChangeRule", "SpotInterruptionRule", "RebalanceRule", "InstanceStateChangeRule"}

// defaultVisibility is the default visibility timeout of SQS
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html).
const defaultVisibility = 30 * time.Second

var (
	namespaceName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	providerARN   = regexp.MustCompile(`^arn:[a-z-]+:iam::\d{12}:oidc-provider/[A-Za-z0-9./_-]+$`)
	rolePath      = regexp.MustCompile(`^([\w+=,.@-]+/)*$`)
	windowsRole   = regexp.MustCompile(`^([\w+=,.@-]+/)*[\w+=,.@-]{1,64}$`)
	roleName      = regexp.MustCompile(`^[\w+=,.@-]{1,64}$`)
	snapshotID    = regexp.MustCompile(`^(snap-[0-9a-f*?]+|\*)$`)
	profileName   = regexp.MustCompile(`^[\w+=,.@-]{1,128}$`)
)

// anyTag allows any key in spec.tags of EC2NodeClasses, as Karpenter's policy does. A list
// of keys prevents a compromised launcher from adding tags that grant access elsewhere.
const anyTag = "*"

// readCluster reads the keys of one cluster. functions is the name prefix of shared
// functions, or empty.
func readCluster(r *reader, functions string) (Cluster, error) {
	adopt, nodeRole := r.readText("adopt"), strings.TrimPrefix(r.readText("nodeRole"), "/")
	nameAt := strings.LastIndex(nodeRole, "/") + 1
	c := Cluster{
		Name: r.readText("clusterName"), UID: r.readText("clusterUID"), Namespace: r.readTextOr("namespace", "joist"), OIDCProvider: r.readText("oidcProvider"),
		Node: Node{Role: nodeRole[nameAt:], RolePath: nodeRole[:nameAt], WindowsRole: strings.TrimPrefix(r.readText("windowsNodeRole"), "/"), Profile: r.readText("instanceProfile"),
			Profiles: Profiles(r.readTextOr("nodeProfiles", string(ByRole))), Access: Access(r.readText("nodeAccess")),
			Tags: r.readListOr("nodeTags", anyTag), Parameters: r.readList("parameters"), Snapshots: r.readList("snapshots")},
		Replayers: r.readList("replayers"), ZonalShift: r.readFlag("zonalShift"), IsolatedVPC: r.readFlag("isolatedVPC"), RebootForRepair: r.readFlag("rebootForRepair"), CloudWatchMetrics: r.readText("cloudWatchMetrics"), Environment: r.readPairs("environment"),
		Queue: ExistingQueue{Policy: r.readFlag("existingQueuePolicy"), Rules: r.readList("existingRules"), Visibility: r.readDuration("queueVisibility")},
	}
	queue, podIdentity := r.readText("interruptionQueue"), r.readFlag("podIdentity")
	if r.err != nil {
		return c, r.err
	}
	if c.Name == "" {
		return c, newError("give the name of the EKS cluster, as `aws eks list-clusters` prints it: --context clusterName=prod", "%sclusterName is missing", r.at)
	}
	if podIdentity && c.OIDCProvider != "" {
		return c, newError("set only one of them", "%s has both podIdentity and oidcProvider", c.Name)
	}
	if err := c.adoptSetup(adopt, &queue); err != nil {
		return c, err
	}
	var err error
	c.Plan, err = topology.NewPlan(topology.Cluster{Name: c.Name, Prefix: r.readText("namePrefix"), Functions: functions, InterruptionQueue: queue})
	if err != nil {
		return c, err
	}
	c.setDefaults()
	return c, firstError(c.checkQueue, c.checkNode, c.checkWindowsRole, c.checkNames, c.checkEnvironment, c.checkMetrics)
}

// adoptSetup sets the existing resources of a Karpenter set-up. Names that do not follow
// from the set-up must be given, because a template cannot look them up.
func (c *Cluster) adoptSetup(setup string, queue *string) error {
	switch setup {
	case "":
		return nil
	case cloudFormation:
		if *queue == "" {
			*queue = c.Name
		}
		if c.Node.Role == "" {
			c.Node.Role = "KarpenterNodeRole-" + c.Name
		}
		c.Queue.Policy = true
		if len(c.Queue.Rules) == 0 {
			c.Queue.Rules = slices.Clone(karpenterRules)
		}
	case terraform:
		if *queue == "" || c.Node.Role == "" {
			return newError("set both, for example interruptionQueue=Karpenter-"+c.Name+"-SpotInterruptionQueue and nodeRole=KarpenterNodeRole-"+c.Name,
				"%s would adopt an incomplete Terraform set-up: interruptionQueue is %q and nodeRole is %q", c.Name, *queue, c.Node.Role)
		}
	default:
		return newError("use cloudformation or terraform, or leave it out", "%s cannot adopt %q", c.Name, setup)
	}
	if c.Node.Access == "" {
		c.Node.Access = ExistingAccess
	}
	return nil
}

// setDefaults sets the defaults of missing keys.
func (c *Cluster) setDefaults() {
	if q, _ := c.Plan.Queue("interruption"); q.Existing && c.Queue.Visibility == 0 {
		c.Queue.Visibility = defaultVisibility
	}
	c.Node.Existing, c.Node.ProfileExisting = c.Node.RolePath+c.Node.Role != "", c.Node.Profile != ""
	if !c.Node.Existing {
		c.Node.Role = c.karpenterName("KarpenterNodeRole-", 64)
	}
	if !c.Node.ProfileExisting {
		c.Node.Profile = c.karpenterName("KarpenterNodeInstanceProfile-", 128)
	}
	if c.Node.Access == "" {
		c.Node.Access = AccessEntry
	}
}

// karpenterName returns Karpenter's name of a resource of the cluster. If it is too long for
// IAM, the name prefix replaces the cluster's name.
func (c *Cluster) karpenterName(kind string, most int) string {
	if len(kind)+len(c.Name) > most {
		return kind + c.Plan.Prefix
	}
	return kind + c.Name
}

func (c *Cluster) checkQueue() error {
	q, _ := c.Plan.Queue("interruption")
	if !q.Existing {
		if c.Queue.Policy || len(c.Queue.Rules) > 0 || c.Queue.Visibility != 0 {
			return newError("give interruptionQueue, the name of that queue, or leave out existingQueuePolicy, existingRules and queueVisibility",
				"%s would adopt an incomplete set-up: settings of its interruption queue are given without the queue", c.Name)
		}
		return nil
	}
	var known []string
	for _, rule := range event.NoticeRules {
		known = append(known, rule.Name)
	}
	for _, rule := range c.Queue.Rules {
		if !slices.Contains(known, rule) {
			return newError("the rules are "+strings.Join(known, ", "), "%s: existingRules names %q", c.Name, rule)
		}
	}
	if len(c.Queue.Rules) > 0 && !c.Queue.Policy {
		return newError("set existingQueuePolicy=true if EventBridge may send to it; otherwise leave out existingRules, and the stack creates both",
			"%s would adopt an incomplete set-up: rules send to %s, but no policy allows them to", c.Name, q.Name)
	}
	if c.Queue.Visibility < defaultVisibility || c.Queue.Visibility > 12*time.Hour {
		return newError("raise the queue's visibility timeout to at least 30 s, and set queueVisibility=30s",
			"%s: the visibility timeout of %s is %s, which is too short for the function", c.Name, q.Name, c.Queue.Visibility)
	}
	return nil
}

func (c *Cluster) checkNode() error {
	switch {
	case c.Node.ProfileExisting && !c.Node.Existing:
		return newError("give the role of the profile: nodeRole="+c.karpenterName("KarpenterNodeRole-", 64),
			"%s would adopt an incomplete set-up: instanceProfile is %s, and its role is not given", c.Name, c.Node.Profile)
	case !rolePath.MatchString(c.Node.RolePath):
		return newError("give the role's name, after its path if it has one, such as eks/"+c.karpenterName("KarpenterNodeRole-", 64)+", without the rest of its ARN",
			"%s: nodeRole is %q", c.Name, c.Node.RolePath+c.Node.Role)
	case !roleName.MatchString(c.Node.Role):
		return newError("give namePrefix=<a shorter one>, or nodeRole=<an existing one>",
			"%s: invalid role name %q (use 1 to 64 letters, digits and +=,.@-_)", c.Name, c.Node.Role)
	case !profileName.MatchString(c.Node.Profile):
		return newError("give the profile's name, without ARN and path", "%s: invalid instance profile name %q", c.Name, c.Node.Profile)
	case slices.ContainsFunc(c.Node.Snapshots, func(id string) bool { return !snapshotID.MatchString(id) }):
		return newError("give ids such as snap-0123456789abcdef0, or leave it out and tag the snapshots", "%s: snapshots has %q", c.Name, c.Node.Snapshots)
	case !slices.Contains([]Profiles{ByRole, ByInstanceProfile}, c.Node.Profiles):
		return newError("give role, if node classes have spec.role, or instanceProfile, if they have spec.instanceProfile", "%s: nodeProfiles is %q", c.Name, c.Node.Profiles)
	case !slices.Contains([]Access{AccessEntry, AWSAuth, ExistingAccess}, c.Node.Access):
		return newError("give accessEntry, awsAuth or existing", "%s: nodeAccess is %q", c.Name, c.Node.Access)
	}
	return nil
}

func (c *Cluster) checkWindowsRole() error {
	switch given := c.Node.WindowsRole; {
	case given == "":
		return nil
	case !windowsRole.MatchString(given) || given == c.Node.RolePath+c.Node.Role:
		return newError("give the name of another existing role, after its path if it has one", "%s: windowsNodeRole is %q", c.Name, given)
	case c.Node.Access == AWSAuth:
		return newError("leave windowsNodeRole out: in aws-auth the role of Linux nodes serves Windows nodes as well", "%s has windowsNodeRole and nodeAccess=awsAuth", c.Name)
	}
	return nil
}

func (c *Cluster) checkNames() error {
	switch {
	case !namespaceName.MatchString(c.Namespace):
		return newError("give a namespace as Kubernetes names them: namespace=joist", "%s: invalid namespace %q", c.Name, c.Namespace)
	case c.OIDCProvider != "" && !providerARN.MatchString(c.OIDCProvider):
		return newError("give the provider's ARN, as `aws iam list-open-id-connect-providers` prints it, or leave it out for Pod Identity",
			"%s: oidcProvider %q is not the ARN of an OIDC provider", c.Name, c.OIDCProvider)
	}
	return nil
}
