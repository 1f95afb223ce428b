package karpenterspecs

import (
	"fmt"
	"path/filepath"
	"strings"
)

// replaced is a controller of Karpenter whose Reconcile becomes a pass of Joist's lifecycle.
type replaced struct {
	// folder is below pkg/controllers. file has the method Reconcile of the receiver.
	folder, file, receiver string
	// object is the type that it reconciles; "" if it reconciles no particular object.
	object string
}

var replacedControllers = []replaced{
	{"node/hydration", "controller.go", "Controller", "corev1.Node"},
	{"node/legacyrepair", "controller.go", "Controller", "corev1.Node"},
	{"node/termination", "controller.go", "Controller", "corev1.Node"},
	{"node/termination/terminator", "eviction.go", "Queue", "corev1.Pod"},
	{"nodeclaim/consistency", "controller.go", "Controller", "v1.NodeClaim"},
	{"nodeclaim/disruption", "controller.go", "Controller", "v1.NodeClaim"},
	{"nodeclaim/expiration", "controller.go", "Controller", "v1.NodeClaim"},
	{"nodeclaim/garbagecollection", "controller.go", "Controller", ""},
	{"nodeclaim/hydration", "controller.go", "Controller", "v1.NodeClaim"},
	{"nodeclaim/lifecycle", "controller.go", "Controller", "v1.NodeClaim"},
	{"nodeclaim/podevents", "controller.go", "Controller", "corev1.Pod"},
	{"nodeclaim/reboot", "controller.go", "Controller", "v1.NodeClaim"},
	{"nodepool/counter", "controller.go", "Controller", "v1.NodePool"},
	{"nodepool/hash", "controller.go", "Controller", "v1.NodePool"},
	{"nodepool/readiness", "controller.go", "Controller", "v1.NodePool"},
	{"nodepool/registrationhealth", "controller.go", "Controller", "v1.NodePool"},
	{"nodepool/validation", "controller.go", "Controller", "v1.NodePool"},
	{"static/deprovisioning", "controller.go", "Controller", "v1.NodePool"},
}

// replacedMetrics register the metrics of a controller that Joist has under the same name.
var replacedMetrics = map[string]string{
	"nodeclaim/lifecycle":         "	lifecyclepass.UseDuration(\"karpenter_nodeclaims_termination_duration_seconds\", NodeClaimTerminationDurationSeconds)\n",
	"node/legacyrepair":           "	lifecyclepass.UseCounter(\"karpenter_nodeclaims_unhealthy_disrupted_total\", disruption.NodeClaimsUnhealthyDisruptedTotal)\n",
	"nodeclaim/reboot":            "	lifecyclepass.UseCounter(\"karpenter_nodes_reboots_total\", RebootsTotal)\n",
	"node/termination":            "	lifecyclepass.UseDuration(\"karpenter_nodes_termination_duration_seconds\", DurationSeconds)\n",
	"node/termination/terminator": "	lifecyclepass.UseCounter(\"karpenter_pods_drained_total\", PodsDrainedTotal)\n",
}

// changedControllers are the changes with which Joist's lifecycle takes the place of Karpenter's controllers. The specs'
// node class becomes EC2's, and the ids of their instances those of EC2.
var changedControllers = change{
	folder:     "controllers",
	everywhere: []string{"karpenter.test.sh", "karpenter.k8s.aws", "TestNodeClass", "EC2NodeClass", "testnodeclass", "ec2nodeclass"},
	edits: append([]edit{
		{"pkg/test/v1alpha1/doc.go", `Version: "v1alpha1"`, `Version: "v1"`, 1},
		{"pkg/test/v1alpha1/crds/karpenter.k8s.aws_ec2nodeclasses.yaml", "- name: v1alpha1", "- name: v1", 1},
		{"pkg/test/metadata.go", `return fmt.Sprintf("fake:///%s", base)`, `return providerIDOf("test-zone-1", base)`, 1},
		{"pkg/test/environment.go", "	return &Environment{\n", "	return shared(&Environment{\n", 1},
		{"pkg/test/environment.go", "		Cancel:              cancel,\n	}\n", "		Cancel:              cancel,\n	})\n", 1},
		{"pkg/test/eventrecorder.go", "	return &EventRecorder{\n		calls: map[string]int{},\n	}\n", "	return sharedRecorder(&EventRecorder{calls: map[string]int{}})\n", 1},
		{"pkg/cloudprovider/fake/cloudprovider.go", "	return &CloudProvider{\n", "	return sharedProvider(&CloudProvider{\n", 1},
		{"pkg/cloudprovider/fake/cloudprovider.go", "		ErrorsForNodePool:        map[string]error{},\n	}\n", "		ErrorsForNodePool:        map[string]error{},\n	})\n", 1},
		{"pkg/cloudprovider/fake/cloudprovider.go", "ProviderID:  test.RandomProviderID()", "ProviderID:  test.ProviderIDInZone(labels[corev1.LabelTopologyZone])", 1},
		{"pkg/controllers/nodeclaim/lifecycle/termination_test.go", absentMetric, "", 3},
		{"pkg/controllers/static/deprovisioning/suite_test.go", "ExpectStateNodePoolCount(cluster", "expectNoCount(cluster", 20},
		{"pkg/controllers/node/termination/terminator/eviction.go", "func (q *Queue) Has(", "func (q *Queue) hasUpstream(", 1},
		{rankingFile, "func RankNodes(", "func rankNodesUpstream(", 1},
		{"pkg/controllers/nodeoverlay/controller.go", "func (c *Controller) Reconcile(", "func (c *Controller) reconcileUpstream(", 1},
		{"pkg/controllers/nodeoverlay/store.go", "func (s *InstanceTypeStore) ApplyAll(", "func (s *InstanceTypeStore) applyAllUpstream(", 1},
		{"pkg/controllers/nodeoverlay/store.go", "func (s *InstanceTypeStore) Reset(", "func (s *InstanceTypeStore) resetUpstream(", 1},
		{"pkg/controllers/capacitybuffer/controller.go", "func (c *Controller) Reconcile(", "func (c *Controller) reconcileUpstream(", 1},
		{"pkg/controllers/capacitybuffer/helpers.go", "func calculate", "func upstream", 2},
		{"pkg/controllers/pod/deletioncost/controller.go", "func (c *Controller) Reconcile(", "func (c *Controller) reconcileUpstream(", 1},
	}, renamedMethods()...),
	files: writeReplacements,
}

// writtenControllers are the files in testdata with the methods of other controllers, by their path in Karpenter.
var writtenControllers = map[string]string{
	"pkg/controllers/capacitybuffer/reconcile_joist.go":   "capacitybuffer.go.txt",
	"pkg/controllers/nodeoverlay/reconcile_joist.go":      "nodeoverlay.go.txt",
	"pkg/controllers/pod/deletioncost/reconcile_joist.go": "deletioncost.go.txt",
}

const rankingFile = "pkg/controllers/pod/deletioncost/ranking.go"

// absentMetric is an expectation about a metric that Joist does not have (metrics.md); the specs expect more after it.
const absentMetric = `ExpectMetricHistogramSampleCountValue("karpenter_nodeclaims_instance_termination_duration_seconds", 1, map[string]string{metrics.NodePoolLabel: nodePool.Name})`

// renamedMethods renames each Reconcile that is replaced.
func renamedMethods() []edit {
	var out []edit
	for _, r := range replacedControllers {
		short := strings.ToLower(r.receiver[:1])
		before := fmt.Sprintf("func (%s *%s) ", short, r.receiver)
		out = append(out, edit{filepath.Join("pkg/controllers", r.folder, r.file), before + "Reconcile(", before + "reconcileUpstream(", 1})
	}
	return out
}

// writeReplacements returns the files that are added to Karpenter.
func writeReplacements() (map[string]string, error) {
	out, err := readAdded(writtenControllers)
	if err != nil {
		return nil, err
	}
	out["pkg/test/shared_joist.go"] = sharedEnvironment
	out["pkg/cloudprovider/fake/shared_joist.go"] = sharedProvider
	out["pkg/controllers/static/deprovisioning/count_joist_test.go"] = noCount
	for _, r := range replacedControllers {
		out[filepath.Join("pkg/controllers", r.folder, "reconcile_joist.go")] = r.text()
	}
	return out, nil
}

// noCount takes the place of an expectation about Karpenter's own count of nodes.
const noCount = `package static_test

import "sigs.k8s.io/karpenter/pkg/controllers/state"

func expectNoCount(*state.Cluster, string, int, int, int) {}
`

const (
	karpenterTypes = `	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"`
	coreTypes      = `	corev1 "k8s.io/api/core/v1"`
	passImport     = `	"github.com/joist-autoscaler/joist/integration/suites/karpenterspecs/lifecyclepass"`
)

// text returns the file with the new Reconcile.
func (r replaced) text() string {
	name := filepath.Base(r.folder)
	if strings.HasPrefix(r.folder, "static/") {
		name = "static"
	}
	if r.object == "" {
		return fmt.Sprintf(`package %s

import (
	"context"

	"github.com/awslabs/operatorpkg/reconciler"

%s
)

func (c *%s) Reconcile(ctx context.Context) (reconciler.Result, error) {
	return reconciler.Result{}, lifecyclepass.CollectGarbage(ctx)
}
`, name, passImport, r.receiver)
	}
	metrics, types := replacedMetrics[r.folder], karpenterTypes
	if strings.HasPrefix(r.object, "corev1.") {
		types = coreTypes
	}
	if strings.Contains(metrics, "disruption.") {
		types += "\n	\"sigs.k8s.io/karpenter/pkg/controllers/disruption\""
	}
	text := fmt.Sprintf(`package %s

import (
	"context"

%s
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

%s
)

func (c *%s) Reconcile(ctx context.Context, o *%s) (reconcile.Result, error) {
	return lifecyclepass.Reconcile(ctx, %q, o)
}
`, name, types, passImport, r.receiver, r.object, r.folder)
	if metrics != "" {
		text += "\nfunc init() {\n" + metrics + "}\n"
	}
	if r.receiver == "Queue" {
		text += "\nfunc (q *Queue) Has(pod *corev1.Pod) bool { return lifecyclepass.IsRemovalRequested(pod) }\n"
	}
	return text
}

const sharedEnvironment = `package test

import (
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/integration/suites/karpenterspecs/lifecyclepass"
)

func shared(e *Environment) *Environment {
	lifecyclepass.UseEnvironment(e.Config, e.Client, e.Clock)
	return e
}

func sharedRecorder(r *EventRecorder) *EventRecorder {
	lifecyclepass.UseRecorder(r)
	return r
}

// ProviderIDInZone returns a new id of an instance in a zone.
func ProviderIDInZone(zone string) string { return providerIDOf(zone, RandomName()) }

// providerIDOf returns the id of an instance in the format of EC2.
func providerIDOf(zone, base string) string {
	return fmt.Sprintf("aws:///%s/i-%s", zone, strings.Map(func(r rune) rune {
		return rune("0123456789abcdef"[r%16])
	}, strings.ReplaceAll(base, "-", "")))
}
`

const sharedProvider = `package fake

import "github.com/joist-autoscaler/joist/integration/suites/karpenterspecs/lifecyclepass"

func sharedProvider(p *CloudProvider) *CloudProvider {
	lifecyclepass.UseCloudProvider(p)
	return p
}
`
