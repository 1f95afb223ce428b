package settings

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Variable is one environment variable.
type Variable struct {
	// Name is Joist's name; Aliases are accepted if Name is not set.
	Name    string
	Aliases []string
	// Purpose completes the sentence "it is …": "the name of the EKS cluster".
	Purpose, Example, Default string
	// IgnoresWrong makes a wrong value a warning, after which the variable counts as not set.
	IgnoresWrong bool

	set func(s *Settings, text string) error
}

// The names of the variables, for lists of required variables and for hints.
const (
	ClusterName    = "JOIST_CLUSTER_NAME"
	ClusterUID     = "JOIST_CLUSTER_UID"
	Clusters       = "JOIST_CLUSTERS"
	RoleARN        = "JOIST_ROLE_ARN"
	Region         = "AWS_REGION"
	Bucket         = "JOIST_BUCKET"
	Prefix         = "JOIST_PREFIX"
	Bus            = "JOIST_BUS"
	QueueURL       = "JOIST_QUEUE_URL"
	DeadLetterURL  = "JOIST_DEAD_LETTER_URL"
	Interruptions  = "INTERRUPTION_QUEUE"
	PlannerURL     = "JOIST_PLANNER_QUEUE_URL"
	DisruptionURL  = "JOIST_DISRUPTION_QUEUE_URL"
	CatalogURL     = "JOIST_CATALOG_QUEUE_URL"
	LauncherURL    = "JOIST_LAUNCHER_QUEUE_URL"
	Namespace      = "JOIST_NAMESPACE"
	LeaseNamespace = "LEADER_ELECTION_NAMESPACE"
	LeaseName      = "LEADER_ELECTION_NAME"
	SingleReplica  = "DISABLE_LEADER_ELECTION"
	Holder         = "POD_NAME"
	Kubeconfig     = "KUBECONFIG"
	BatchMax       = "BATCH_MAX_DURATION"
	BatchIdle      = "BATCH_IDLE_DURATION"
	MemoryOverhead = "VM_MEMORY_OVERHEAD_PERCENT"
	Preferences    = "PREFERENCE_POLICY"
	MinValues      = "MIN_VALUES_POLICY"
	ReservedENIs   = "RESERVED_ENIS"
	FeatureGates   = "FEATURE_GATES"
	AWSGates       = "AWS_FEATURE_GATES"
	LegacyRepair   = "LEGACY_NODE_REPAIR"
	GroupRefresh   = "SECURITY_GROUP_REFRESH_INTERVAL"
	Scheduler      = "SCHEDULER_CONFIG"
	DisableDryRun  = "DISABLE_DRY_RUN"
	IgnoreDRA      = "IGNORE_DRA_REQUESTS"
	MaxNodeShare   = "MAX_NODE_SHARE"
	Premium        = "RESILIENCE_PREMIUM"
	ByPriority     = "PLAN_BY_PRIORITY"
	PriceLimit     = "JOIST_PRICE_LIMIT"
	TemplateAge    = "JOIST_TEMPLATE_AGE"
	MaxPerIntent   = "JOIST_MAX_INSTANCES_PER_INTENT"
	MaxPerMinute   = "JOIST_MAX_INSTANCES_PER_MINUTE"
	EC2Share       = "JOIST_EC2_RATE_SHARE"
	RepairRules    = "JOIST_REPAIR_RULES"
	Unhealthy      = "JOIST_REPAIR_UNHEALTHY"
	UnhealthyZone  = "JOIST_REPAIR_UNHEALTHY_IN_ZONE"
	PoolApproval   = "JOIST_POOL_GATE"
	Rebalance      = "JOIST_REBALANCE_POLICY"
	IsolatedVPC    = "ISOLATED_VPC"
	ZonalShift     = "ENABLE_ZONAL_SHIFT"
	Endpoint       = "CLUSTER_ENDPOINT"
	CABundle       = "CLUSTER_CA_BUNDLE"
	ControlPlane   = "EKS_CONTROL_PLANE"
	Kubernetes     = "JOIST_KUBERNETES_VERSION"
	ServiceCIDR    = "JOIST_SERVICE_CIDR"
	LogLevel       = "LOG_LEVEL"
	MetricsPort    = "METRICS_PORT"
	Profiling      = "ENABLE_PROFILING"
	HealthPort     = "HEALTH_PROBE_PORT"
	CloudWatch     = "JOIST_CLOUDWATCH_METRICS"
	Lambda         = "AWS_LAMBDA_RUNTIME_API"
)

// Variables lists all variables.
var Variables = slices.Concat(joistVariables, openTelemetryVariables)

var joistVariables = []Variable{
	{Name: ClusterName, Aliases: []string{"CLUSTER_NAME"}, Purpose: "the name of the EKS cluster", Example: "prod",
		set: parseText(func(s *Settings) *string { return &s.Cluster.Name })},
	{Name: ClusterUID, Purpose: "the UID of the cluster's kube-system namespace, which distinguishes clusters of the same name", Example: "0b5e1d0a-6f0c-4c55-9d0e-3f1f6f1c2a77",
		set: parseText(func(s *Settings) *string { return &s.Cluster.UID })},
	{Name: Clusters, Purpose: "the clusters that this process serves, if there are several: a JSON list of objects, each with the variables of one cluster",
		Example: `[{"JOIST_CLUSTER_NAME":"prod","JOIST_QUEUE_URL":"https://sqs.eu-west-1.amazonaws.com/111122223333/prod-joist-planner"}]`,
		set:     func(*Settings, string) error { return nil }}, // ReadClusters parses it.
	{Name: RoleARN, Purpose: "the IAM role for all AWS calls for the cluster except those to the service's own queue, if it is not the process's role", Example: "arn:aws:iam::111122223333:role/prod-joist-planner",
		set: parseMatch(roleARNs, "is not the ARN of a role", func(s *Settings) *string { return &s.RoleARN })},
	{Name: Region, Aliases: []string{"AWS_DEFAULT_REGION"}, Purpose: "the cluster's AWS region", Example: "eu-west-1",
		set: parseText(func(s *Settings) *string { return &s.Region })},
	{Name: Bucket, Purpose: "the S3 bucket of batches, plans and catalogues", Example: "joist-prod-111122223333",
		set: parseText(func(s *Settings) *string { return &s.Bucket })},
	{Name: Prefix, Purpose: "the cluster's prefix in the bucket", Example: "prod",
		set: parseText(func(s *Settings) *string { return &s.Prefix })},
	{Name: Bus, Purpose: "the name or ARN of the EventBridge bus to which facts are published", Example: "joist",
		set: parseText(func(s *Settings) *string { return &s.Bus })},
	queueVariable(QueueURL, "the SQS queue that this service reads", "planner", func(s *Settings) *string { return &s.QueueURL }),
	queueVariable(DeadLetterURL, "the DLQ of the service's queue", "planner-dead", func(s *Settings) *string { return &s.DeadLetterURL }),
	{Name: Interruptions, Purpose: "the name of the SQS queue of interruption events, in this account and region, if " + QueueURL + " is not set; " +
		"only this service handles interruptions", Example: "prod",
		set: parseMatch(queueNames, "is not the name of a standard queue", func(s *Settings) *string { return &s.InterruptionQueue })},
	queueVariable(PlannerURL, "the planner's SQS queue", "planner", func(s *Settings) *string { return &s.PlannerURL }),
	queueVariable(DisruptionURL, "the disruption service's SQS queue", "disruption", func(s *Settings) *string { return &s.DisruptionURL }),
	queueVariable(CatalogURL, "the catalog's SQS queue", "catalog", func(s *Settings) *string { return &s.CatalogURL }),
	queueVariable(LauncherURL, "the launcher's SQS queue", "launcher", func(s *Settings) *string { return &s.LauncherURL }),
	{Name: Namespace, Aliases: []string{"POD_NAMESPACE"}, Purpose: "the namespace of Joist's own objects", Example: "joist", Default: "joist",
		set: parseText(func(s *Settings) *string { return &s.Namespace })},
	{Name: LeaseNamespace, Purpose: "the namespace of Karpenter's Lease, which Joist holds while it acts", Example: "kube-system", Default: "kube-system",
		set: parseText(func(s *Settings) *string { return &s.LeaseNamespace })},
	{Name: LeaseName, Purpose: "the name of that Lease, if Karpenter uses another than its default", Example: "karpenter-leader-election", Default: "karpenter-leader-election",
		set: parseText(func(s *Settings) *string { return &s.LeaseName })},
	{Name: SingleReplica, Purpose: "whether there is only one replica, which needs no Lease of Joist; Karpenter's Lease is always held", Example: "true", Default: "false",
		set: parseBool(func(s *Settings, on bool) { s.HasSingleReplica = on })},
	{Name: Holder, Aliases: []string{"HOSTNAME"}, Purpose: "the identity of this replica, unique among the replicas", Example: "joist-watcher-0",
		set: parseText(func(s *Settings) *string { return &s.Holder })},
	{Name: Kubeconfig, Purpose: "the kubeconfig file to use outside of a pod", Example: "/home/me/.kube/config",
		set: parseText(func(s *Settings) *string { return &s.Kubeconfig })},
	{Name: BatchMax, Purpose: "the longest time for which a batch collects pods", Example: "10s", Default: "10s",
		set: parseDuration(func(s *Settings) *positiveDuration { return (*positiveDuration)(&s.BatchMax) })},
	{Name: BatchIdle, Purpose: "the time without a new pod after which a batch is sent", Example: "1s", Default: "1s",
		set: parseDuration(func(s *Settings) *positiveDuration { return (*positiveDuration)(&s.BatchIdle) })},
	{Name: MemoryOverhead, Purpose: "the fraction of an instance's memory that its hypervisor keeps", Example: "0.075", Default: "0.075",
		set: parseFraction(func(s *Settings) *float64 {
			s.Scheduling.VMMemoryOverheadPercent = new(float64)
			return s.Scheduling.VMMemoryOverheadPercent
		})},
	{Name: Preferences, Purpose: "whether preferred terms count", Example: "Respect", Default: "Respect",
		set: parseChoice(func(s *Settings) *string { return &s.Scheduling.PreferencePolicy }, "Respect", "Ignore")},
	{Name: MinValues, Purpose: "whether minValues of a NodePool are strict", Example: "Strict", Default: "Strict",
		set: parseChoice(func(s *Settings) *string { return &s.Scheduling.MinValuesPolicy }, "Strict", "BestEffort")},
	{Name: ReservedENIs, Purpose: "the number of network interfaces that are not used for pods", Example: "1", Default: "0",
		set: parseNumber(100, func(s *Settings) *int { return &s.Scheduling.ReservedENIs })},
	{Name: FeatureGates, Purpose: "the feature gates that are switched on or off", Example: "NodeOverlay=true,StaticCapacity=true", Default: "ReservedCapacity=true", set: parseFeatureGates},
	{Name: AWSGates, Purpose: "the feature gates of Karpenter's AWS provider that are switched on or off", Example: "NodeClassCEL=true", set: parseAWSFeatureGates},
	{Name: LegacyRepair, Purpose: "whether nodes are repaired as in Karpenter 1.14, outside of disruption budgets (feature gate NodeRepair)", Example: "true", Default: "false",
		set: parseBool(func(s *Settings, on bool) { s.LegacyNodeRepair = on })},
	{Name: GroupRefresh, Purpose: "the time for which the security groups of a node class are cached, at least 1m", Example: "5m", Default: "1m",
		set: parseRefreshInterval},
	{Name: Scheduler, Purpose: "the default topology spread constraints of the cluster's kube-scheduler, as YAML or JSON",
		Example: `{"podTopologySpread":{"defaultConstraints":[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway"}]}}`, set: parseSchedulerConfig},
	{Name: DisableDryRun, Purpose: "whether node classes become ready without dry runs of the launch calls", Example: "true", Default: "false",
		set: parseBool(func(s *Settings, on bool) { s.DryRuns = !on })},
	{Name: IgnoreDRA, Purpose: "whether pods with resource claims are ignored", Example: "true", Default: "true",
		set: parseBool(func(s *Settings, on bool) { s.Scheduling.PlanDRARequests = !on })},
	{Name: MaxNodeShare, Purpose: "the largest fraction of a plan's pods that one new node should run (default a third)", Example: "0.2",
		set: parseFraction(func(s *Settings) *float64 { return &s.Scheduling.MaxNodeShare })},
	{Name: Premium, Purpose: "how much more a plan may cost in order to respect " + MaxNodeShare + ", as a fraction of its price (default 0.03)", Example: "0.1",
		set: parseFraction(func(s *Settings) *float64 {
			s.Scheduling.ResiliencePremium = new(float64)
			return s.Scheduling.ResiliencePremium
		})},
	{Name: ByPriority, Purpose: "whether pods of higher priority use the limits of NodePools first", Example: "true", Default: "false",
		set: parseBool(func(s *Settings, on bool) { s.Scheduling.PlanByPriority = on })},
	{Name: PriceLimit, Purpose: "the highest total price of all nodes that Joist manages, in US dollars per hour at purchase prices (default no limit); watcher and lifecycle must agree", Example: "250",
		set: parseDollars(func(s *Settings) **float64 { return &s.Scheduling.PriceLimit })},
	{Name: TemplateAge, Purpose: "the age at which a launch template is deleted", Example: "1h", Default: "1h",
		set: parseDuration(func(s *Settings) *positiveDuration { return (*positiveDuration)(&s.TemplateAge) })},
	{Name: MaxPerIntent, Purpose: "the maximum number of instances of one launch intent", Example: "500", Default: "500",
		set: parseNumber(1000, func(s *Settings) *int { return &s.MaxPerIntent })},
	{Name: MaxPerMinute, Purpose: "the maximum number of instances that a launcher launches for the cluster per minute", Example: "1000", Default: "1000",
		set: parseNumber(100000, func(s *Settings) *int { return &s.MaxPerMinute })},
	{Name: EC2Share, Purpose: "how much of EC2's documented request rates a launcher uses at most; above 1 if AWS has raised those of the account", Example: "0.25", Default: "1",
		set: parseEC2Share(func(s *Settings) *float64 { return &s.EC2Share })},
	{Name: RepairRules, Purpose: "the conditions of an unhealthy node, and how long it has them before it is replaced, instead of Karpenter's policies (feature gate NodeRepair)", Example: "Ready=Unknown:15m,KernelReady=False:1h",
		set: parseRepairRules},
	{Name: Unhealthy, Purpose: "how many nodes of a NodePool may be unhealthy before node repair stops for it", Example: "20%", Default: "20%",
		set: parseShare(func(s *Settings, n intstr.IntOrString) { s.Repair.Unhealthy = n })},
	{Name: UnhealthyZone, Purpose: "how many nodes of a zone may be unhealthy before node repair stops for it (default no limit)", Example: "50%",
		set: parseShare(func(s *Settings, n intstr.IntOrString) { s.Repair.UnhealthyInZone = &n })},
	{Name: PoolApproval, Purpose: "the number of nodes and the percentage of the cluster above which the deletion of a NodePool needs approval, or off", Example: "5,20%", Default: "5,20%",
		set: parsePoolApproval},
	{Name: Rebalance, Purpose: "the action for a spot node with a rebalance recommendation: ignore, cordon (no further pods), or replace (drained before the interruption warning)", Example: "cordon", Default: "ignore",
		set: parseChoice(func(s *Settings) *string { return &s.Rebalance }, "ignore", "cordon", "replace")},
	{Name: IsolatedVPC, Purpose: "whether AWS is reached only through VPC endpoints, so that the on-demand prices embedded in the binary are used", Example: "true", Default: "false",
		set: parseBool(func(s *Settings, on bool) { s.IsolatedVPC = on })},
	{Name: ZonalShift, Purpose: "whether zones with an active zonal shift are avoided", Example: "true", Default: "false",
		set: parseBool(func(s *Settings, on bool) { s.ZonalShift = on })},
	{Name: Endpoint, Purpose: "the URL at which new nodes reach the cluster's API server, if it is not the one from EKS", Example: "https://api.prod.example.com",
		set: parseEndpoint},
	{Name: CABundle, Purpose: "the CA certificates of that server for new nodes, as base64 of PEM, if they are not those from EKS", Example: "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=",
		set: parseCertificates},
	{Name: ControlPlane, Purpose: "whether EKS runs the control plane; if not, EKS is not called, and " + Endpoint + ", " + CABundle + " and " + Kubernetes + " are required", Example: "false", Default: "true",
		set: parseBool(func(s *Settings, on bool) { s.IsSelfManaged = !on })},
	{Name: Kubernetes, Purpose: "the cluster's Kubernetes version, if EKS is not called", Example: "1.35",
		set: parseMatch(kubernetesVersions, "is not a minor version such as 1.35", func(s *Settings) *string { return &s.KubernetesVersion })},
	{Name: ServiceCIDR, Purpose: "the CIDR of the cluster's Services, if EKS is not called; AL2023 nodes cannot join without it", Example: "10.100.0.0/16",
		set: parseAddressRange},
	{Name: LogLevel, Purpose: "the minimum level of logs", Example: "info", Default: "info", set: parseLogLevel},
	{Name: MetricsPort, Purpose: "the port of /metrics, or 0 for none", Example: "8080", Default: "8080",
		set: parseNumber(65535, func(s *Settings) *int { return &s.MetricsPort })},
	{Name: Profiling, Purpose: "whether /debug/pprof/ is served on the port of /metrics; functions ignore it", Example: "true", Default: "false",
		set: parseBool(func(s *Settings, on bool) { s.Profiling = on })},
	{Name: HealthPort, Purpose: "the port of /healthz and /readyz, or 0 for none", Example: "8081", Default: "8081",
		set: parseNumber(65535, func(s *Settings) *int { return &s.HealthPort })},
	{Name: CloudWatch, Aliases: []string{"AWS_EMF_AGENT_ENDPOINT"}, Purpose: "the target of the metrics for CloudWatch, written each minute: a CloudWatch agent, or stdout", Example: "tcp://cloudwatch-agent.amazon-cloudwatch:25888",
		set: parseCloudWatch},
	{Name: Lambda, Purpose: "set by Lambda, and makes the process run as a Lambda function", Example: "127.0.0.1:9001",
		set: parseText(func(s *Settings) *string { return &s.Lambda })},
}

// HelpText returns the --help text of one command: intro, the required variables, then the optional ones.
func HelpText(intro string, required, optional []string) string {
	var b strings.Builder
	b.WriteString(intro + "\n\nRequired environment variables:\n")
	explainVariable(&b, required)
	b.WriteString("\nOptional environment variables:\n")
	explainVariable(&b, optional)
	return strings.TrimRight(b.String(), "\n")
}

func explainVariable(b *strings.Builder, names []string) {
	for _, name := range names {
		for _, v := range Variables {
			if v.Name != name {
				continue
			}
			b.WriteString("  " + strings.Join(append([]string{v.Name}, v.Aliases...), ", or ") + "\n        " + v.Purpose)
			if v.Default != "" {
				b.WriteString(" (default " + v.Default + ")")
			} else {
				b.WriteString(", for example " + v.Example)
			}
			b.WriteString("\n")
		}
	}
}
