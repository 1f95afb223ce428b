package settings_test

import (
	"log/slog"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
)

func environment(of map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { text, ok := of[name]; return text, ok }
}

var defaults = settings.Settings{
	Namespace: "joist", LeaseNamespace: "kube-system", LeaseName: lease.KarpenterName, BatchMax: 10 * time.Second, BatchIdle: time.Second,
	Scheduling: planning.Settings{PreferencePolicy: "Respect", MinValuesPolicy: "Strict", VMMemoryOverheadPercent: new(0.075), Gates: planning.Gates{ReservedCapacity: true}},
	Repair:     repair.PolicySet{Policies: repair.Provider(false), Unhealthy: intstr.FromString("20%")}, PoolDeletionApproval: settings.PoolDeletionApproval{On: true, Nodes: 5, Percent: 20},
	Rebalance: "ignore", SecurityGroupRefreshInterval: time.Minute,
	TemplateAge: time.Hour, DryRuns: true, MaxPerIntent: 500, MaxPerMinute: 1000, EC2Share: 1, MetricsPort: 8080, HealthPort: 8081, Tracing: settings.Tracing{Protocol: "http/protobuf"},
}

func silentFor15Minutes() []repair.Policy {
	policies, _ := repair.Parse("Ready=Unknown:15m")
	return policies
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want func(s *settings.Settings)
	}{
		{"nothing", nil, func(*settings.Settings) {}},
		{"price limit", map[string]string{"JOIST_PRICE_LIMIT": "$250.50"}, func(s *settings.Settings) { s.Scheduling.PriceLimit = new(250.5) }},
		{"price limit of zero", map[string]string{"JOIST_PRICE_LIMIT": "0"}, func(s *settings.Settings) { s.Scheduling.PriceLimit = new(0.0) }},
		{"empty is not set", map[string]string{"LOG_LEVEL": "", "JOIST_NAMESPACE": ""}, func(*settings.Settings) {}},
		{"Joist's name of the cluster", map[string]string{"JOIST_CLUSTER_NAME": "a", "CLUSTER_NAME": "b", "JOIST_CLUSTER_UID": "u"},
			func(s *settings.Settings) { s.Cluster = event.Cluster{Name: "a", UID: "u"} }},
		{"Karpenter's name of the cluster", map[string]string{"CLUSTER_NAME": "b"}, func(s *settings.Settings) { s.Cluster.Name = "b" }},
		{"Karpenter's durations", map[string]string{"BATCH_MAX_DURATION": "1m30s", "BATCH_IDLE_DURATION": "250ms"}, func(s *settings.Settings) {
			s.BatchMax, s.BatchIdle = 90*time.Second, 250*time.Millisecond
		}},
		{"knobs", map[string]string{
			"VM_MEMORY_OVERHEAD_PERCENT": "0", "PREFERENCE_POLICY": "Ignore", "MIN_VALUES_POLICY": "BestEffort", "RESERVED_ENIS": "2",
			"LOG_LEVEL": "debug", "METRICS_PORT": "0", "HEALTH_PROBE_PORT": "9", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "JOIST_TEMPLATE_AGE": "24h",
			"JOIST_CLOUDWATCH_METRICS": "stdout", "JOIST_MAX_INSTANCES_PER_INTENT": "10", "JOIST_MAX_INSTANCES_PER_MINUTE": "20", "JOIST_EC2_RATE_SHARE": "0.25",
		}, func(s *settings.Settings) {
			s.Scheduling = planning.Settings{PreferencePolicy: "Ignore", MinValuesPolicy: "BestEffort", VMMemoryOverheadPercent: new(0.0), ReservedENIs: 2, Gates: planning.Gates{ReservedCapacity: true}}
			s.LogLevel, s.MetricsPort, s.HealthPort, s.Tracing.HasEndpoint, s.TemplateAge = slog.LevelDebug, 0, 9, true, 24*time.Hour
			s.MaxPerIntent, s.MaxPerMinute, s.EC2Share, s.CloudWatch = 10, 20, 0.25, "stdout"
		}},
		{"gates in addition to the defaults", map[string]string{"FEATURE_GATES": "NodeOverlay=true, CapacityBuffer=1,NodeRepair=true,"}, func(s *settings.Settings) {
			s.Scheduling.Gates = planning.Gates{ReservedCapacity: true, NodeOverlay: true, CapacityBuffer: true}
			s.NodeRepair = true
		}},
		{"gates against the defaults", map[string]string{"FEATURE_GATES": "ReservedCapacity=false,StaticCapacity=true"}, func(s *settings.Settings) {
			s.Scheduling.Gates = planning.Gates{StaticCapacity: true}
		}},
		{"legacy node repair", map[string]string{"FEATURE_GATES": "NodeRepair=true", "LEGACY_NODE_REPAIR": "true"}, func(s *settings.Settings) {
			s.NodeRepair, s.LegacyNodeRepair = true, true
			s.Repair.Policies = repair.LegacyProvider()
		}},
		{"gates of 1.15", map[string]string{"FEATURE_GATES": "TerminateFirstDrift=true,TerminateFirstRepair=true,PodDeletionCostManagement=true,NodeRepair=true"}, func(s *settings.Settings) {
			s.Scheduling.Gates.TerminateFirstDrift, s.TerminateFirstRepair, s.PodDeletionCostManagement, s.NodeRepair = true, true, true, true
			s.Repair.TerminateFirst = true
		}},
		{"the gate of drift is not that of repair", map[string]string{"FEATURE_GATES": "TerminateFirstDrift=true"}, func(s *settings.Settings) {
			s.Scheduling.Gates.TerminateFirstDrift = true
		}},
		{"repair gates without node repair", map[string]string{"FEATURE_GATES": "TerminateFirstRepair=true", "AWS_FEATURE_GATES": "RebootForRepair=true"}, func(s *settings.Settings) {
			s.TerminateFirstRepair, s.AWSFeatureGates.RebootForRepair, s.Repair.TerminateFirst = true, true, true
			s.Repair.Policies = repair.Provider(true)
			s.Warnings = []string{
				"FEATURE_GATES: TerminateFirstRepair has no effect without the feature gate NodeRepair", "AWS_FEATURE_GATES: RebootForRepair has no effect without the feature gate NodeRepair",
			}
		}},
		{"legacy node repair without node repair", map[string]string{"LEGACY_NODE_REPAIR": "true"}, func(s *settings.Settings) {
			s.LegacyNodeRepair = true
			s.Repair.Policies = repair.LegacyProvider()
			s.Warnings = []string{"LEGACY_NODE_REPAIR has no effect without the feature gate NodeRepair"}
		}},
		{"reboots with legacy node repair", map[string]string{"FEATURE_GATES": "NodeRepair=true", "LEGACY_NODE_REPAIR": "true", "AWS_FEATURE_GATES": "RebootForRepair=true"}, func(s *settings.Settings) {
			s.NodeRepair, s.LegacyNodeRepair, s.AWSFeatureGates.RebootForRepair = true, true, true
			s.Repair.Policies = repair.LegacyProvider()
			s.Warnings = []string{"AWS_FEATURE_GATES: RebootForRepair has no effect with LEGACY_NODE_REPAIR, which only replaces nodes"}
		}},
		{"Karpenter's variables without effect", map[string]string{"AMI_REFRESH_INTERVAL": "5m", "KUBE_CLIENT_QPS": "", "LOG_OUTPUT_PATHS": "stdout"}, func(s *settings.Settings) {
			s.Warnings = []string{
				"AMI_REFRESH_INTERVAL has no effect: images are read each minute, and when the node class changes", "LOG_OUTPUT_PATHS has no effect: logs go to standard output",
			}
		}},
		{"unknown gates are named and have no effect", map[string]string{"FEATURE_GATES": "Drift=true,NodeRepair=true", "AWS_FEATURE_GATES": "Hello =true, DRAEFA = true,World=false"}, func(s *settings.Settings) {
			s.NodeRepair, s.Scheduling.Gates.DRAEFA = true, true
			s.Warnings = []string{
				"FEATURE_GATES: unknown gate Drift has no effect", "AWS_FEATURE_GATES: unknown gate Hello has no effect", "AWS_FEATURE_GATES: unknown gate World has no effect",
				"AWS_FEATURE_GATES: DRANVIDIAGPU and DRAEFA have no effect without IGNORE_DRA_REQUESTS=false",
			}
		}},
		{"each AWS gate", map[string]string{"AWS_FEATURE_GATES": "NodeClassCEL=true,DRANVIDIAGPU=true,DRAEFA=false", "IGNORE_DRA_REQUESTS": "false"}, func(s *settings.Settings) {
			s.Scheduling.Gates.NodeClassCEL, s.Scheduling.Gates.DRANVIDIAGPU, s.Scheduling.PlanDRARequests = true, true, true
		}},
		{"security groups are cached longer", map[string]string{"SECURITY_GROUP_REFRESH_INTERVAL": "15m"}, func(s *settings.Settings) {
			s.SecurityGroupRefreshInterval = 15 * time.Minute
		}},
		{"repair", map[string]string{"JOIST_REPAIR_RULES": "Ready=Unknown:15m", "JOIST_REPAIR_UNHEALTHY": "3", "JOIST_REPAIR_UNHEALTHY_IN_ZONE": "50%"}, func(s *settings.Settings) {
			zone := intstr.FromString("50%")
			s.Repair = repair.PolicySet{Policies: silentFor15Minutes(), Unhealthy: intstr.FromInt32(3), UnhealthyInZone: &zone}
		}},
		{"rebalance recommendations are handled", map[string]string{"JOIST_REBALANCE_POLICY": "replace"}, func(s *settings.Settings) { s.Rebalance = "replace" }},
		{"NodePool deletion without approval", map[string]string{"JOIST_POOL_GATE": "off"}, func(s *settings.Settings) { s.PoolDeletionApproval = settings.PoolDeletionApproval{} }},
		{"only a number of nodes", map[string]string{"JOIST_POOL_GATE": "20"}, func(s *settings.Settings) {
			s.PoolDeletionApproval = settings.PoolDeletionApproval{On: true, Nodes: 20, Percent: 100}
		}},
		{"only a percentage of the cluster", map[string]string{"JOIST_POOL_GATE": " 50% "}, func(s *settings.Settings) {
			s.PoolDeletionApproval = settings.PoolDeletionApproval{On: true, Nodes: math.MaxInt, Percent: 50}
		}},
		{"no dry runs", map[string]string{"DISABLE_DRY_RUN": "true"}, func(s *settings.Settings) { s.DryRuns = false }},
		{"resource claims", map[string]string{"IGNORE_DRA_REQUESTS": "false"}, func(s *settings.Settings) { s.Scheduling.PlanDRARequests = true }},
		{"Karpenter's elections", map[string]string{"LEADER_ELECTION_NAME": "ours", "DISABLE_LEADER_ELECTION": "true"}, func(s *settings.Settings) {
			s.LeaseName, s.HasSingleReplica = "ours", true
		}},
		{"AWS's name of an agent", map[string]string{"AWS_EMF_AGENT_ENDPOINT": "tcp://agent:25888"}, func(s *settings.Settings) { s.CloudWatch = "tcp://agent:25888" }},
		{"Karpenter's queue", map[string]string{"INTERRUPTION_QUEUE": "prod"}, func(s *settings.Settings) { s.InterruptionQueue = "prod" }},
		{"places", map[string]string{
			"AWS_REGION": "r", "JOIST_BUCKET": "b", "JOIST_PREFIX": "p", "JOIST_BUS": "u", "JOIST_NAMESPACE": "n", "LEADER_ELECTION_NAMESPACE": "l",
			"POD_NAME": "h", "KUBECONFIG": "k", "AWS_LAMBDA_RUNTIME_API": "a", "JOIST_QUEUE_URL": "http://q/1", "JOIST_DEAD_LETTER_URL": "http://q/2",
			"JOIST_PLANNER_QUEUE_URL": "http://q/3", "JOIST_DISRUPTION_QUEUE_URL": "http://q/4", "JOIST_CATALOG_QUEUE_URL": "http://q/5", "JOIST_LAUNCHER_QUEUE_URL": "http://q/6",
		}, func(s *settings.Settings) {
			s.Region, s.Bucket, s.Prefix, s.Bus, s.Namespace, s.LeaseNamespace, s.Holder, s.Kubeconfig, s.Lambda = "r", "b", "p", "u", "n", "l", "h", "k", "a"
			s.QueueURL, s.DeadLetterURL, s.PlannerURL, s.DisruptionURL, s.CatalogURL, s.LauncherURL = "http://q/1", "http://q/2", "http://q/3", "http://q/4", "http://q/5", "http://q/6"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := defaults
			c.want(&want)
			got, err := settings.Read(environment(c.env))
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v%s", err, diff)
			}
		})
	}
}

// The error for a wrong value contains its variable, the purpose and an example; all problems are reported at once.
func TestReadRejects(t *testing.T) {
	for name, value := range map[string]string{
		"FEATURE_GATES": "NodeOverlay=maybe", "AWS_FEATURE_GATES": "NodeClassCEL", "LEGACY_NODE_REPAIR": "x", "SECURITY_GROUP_REFRESH_INTERVAL": "59s", "SCHEDULER_CONFIG": "podTopologySpread: {", "DISABLE_LEADER_ELECTION": "no", "INTERRUPTION_QUEUE": "https://sqs.eu-west-1.amazonaws.com/111122223333/prod", "IGNORE_DRA_REQUESTS": "maybe",
		"BATCH_MAX_DURATION": "10", "BATCH_IDLE_DURATION": "-1s", "VM_MEMORY_OVERHEAD_PERCENT": "7.5", "PREFERENCE_POLICY": "respect",
		"MIN_VALUES_POLICY": "none", "RESERVED_ENIS": "-1", "LOG_LEVEL": "loud", "METRICS_PORT": "65536", "HEALTH_PROBE_PORT": "x",
		"JOIST_QUEUE_URL": "prod-planner", "JOIST_DEAD_LETTER_URL": "arn:aws:sqs:eu-west-1:111122223333:prod", "JOIST_TEMPLATE_AGE": "0s",
		"JOIST_MAX_INSTANCES_PER_INTENT": "1001", "JOIST_MAX_INSTANCES_PER_MINUTE": "many", "JOIST_EC2_RATE_SHARE": "101",
		"JOIST_REPAIR_RULES": "Ready", "JOIST_REPAIR_UNHEALTHY": "half", "JOIST_REPAIR_UNHEALTHY_IN_ZONE": "101%", "JOIST_POOL_GATE": "on", "JOIST_PRICE_LIMIT": "a lot",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := settings.Read(environment(map[string]string{name: value}))
			if err == nil || !strings.Contains(err.Error(), name+`="`+value+`" is `) || !strings.Contains(err.Error(), "for example "+name+"=") {
				t.Error(err)
			}
			if !fault.Is(err, fault.Invalid) {
				t.Error(fault.KindOf(err))
			}
		})
	}
	t.Run("idle longer than max", func(t *testing.T) {
		if _, err := settings.Read(environment(map[string]string{"BATCH_IDLE_DURATION": "1m"})); err == nil || !strings.Contains(err.Error(), "BATCH_MAX_DURATION") {
			t.Error(err)
		}
	})
	t.Run("legacy node repair that terminates first", func(t *testing.T) {
		_, err := settings.Read(environment(map[string]string{"LEGACY_NODE_REPAIR": "true", "FEATURE_GATES": "TerminateFirstRepair=true,NodeRepair=true"}))
		if err == nil || !strings.Contains(err.Error(), "LEGACY_NODE_REPAIR=true excludes the feature gate TerminateFirstRepair") {
			t.Error(err)
		}
	})
	t.Run("security groups are cached too briefly", func(t *testing.T) {
		_, err := settings.Read(environment(map[string]string{"SECURITY_GROUP_REFRESH_INTERVAL": "59s"}))
		if err == nil || !strings.Contains(err.Error(), "security-group-refresh-interval must be at least 1m") {
			t.Error(err)
		}
	})
	t.Run("several errors, by the name that was used", func(t *testing.T) {
		_, err := settings.Read(environment(map[string]string{"LOG_LEVEL": "loud"}), settings.ClusterName, settings.Bucket)
		for _, want := range []string{"JOIST_CLUSTER_NAME is not set: it is the name of the EKS cluster, for example JOIST_CLUSTER_NAME=prod", "JOIST_BUCKET is not set", "LOG_LEVEL"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q is missing in the error: %v", want, err)
			}
		}
	})
	t.Run("required by its alias", func(t *testing.T) {
		if _, err := settings.Read(environment(map[string]string{"CLUSTER_NAME": "prod"}), settings.ClusterName); err != nil {
			t.Error(err)
		}
	})
}

// The table is complete, and its examples are valid.
func TestVariables(t *testing.T) {
	names := map[string]int{}
	for _, v := range settings.Variables {
		for _, name := range append([]string{v.Name}, v.Aliases...) {
			names[name]++
		}
		if v.Purpose == "" || v.Example == "" {
			t.Errorf("variable %s has no purpose or no example", v.Name)
		}
		if _, err := settings.Read(environment(map[string]string{v.Name: v.Example})); err != nil {
			t.Errorf("example of %s: %v", v.Name, err)
		}
	}
	for name := range maps.Keys(names) {
		if names[name] > 1 {
			t.Errorf("variable %s is listed twice", name)
		}
	}
	help := settings.HelpText("It does things.", []string{settings.ClusterName}, []string{settings.LogLevel})
	want := "It does things.\n\nRequired environment variables:\n  JOIST_CLUSTER_NAME, or CLUSTER_NAME\n        the name of the EKS cluster, for example prod\n\n" +
		"Optional environment variables:\n  LOG_LEVEL\n        the minimum level of logs (default info)"
	if diff := cmp.Diff(want, help); diff != "" {
		t.Error(diff)
	}
}

// The legacy node repair and a cluster without node repair have no matcher. Invalid policies stop
// the process.
func TestNewRepairMatcher(t *testing.T) {
	invalid := repair.Provider(false)[:1]
	for name, c := range map[string]struct {
		repairs, legacy bool
		policies        []repair.Policy
		wantMatcher     bool
		says            string
	}{
		"off":              {false, false, invalid, false, ""},
		"legacy":           {true, true, invalid, false, ""},
		"on":               {true, false, repair.Provider(true), true, ""},
		"without policies": {true, false, nil, false, "node repair requires the cloud provider to define RepairPolicies, but it defines none"},
		"invalid policies": {true, false, invalid, false, "node repair requires valid RepairPolicies, repair policy set must define one default fallback"},
	} {
		s := settings.Settings{NodeRepair: c.repairs, LegacyNodeRepair: c.legacy, Repair: repair.PolicySet{Policies: c.policies}}
		m, err := s.NewRepairMatcher()
		if (m != nil) != c.wantMatcher || (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}
