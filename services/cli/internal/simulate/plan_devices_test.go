package simulate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

const gpuManifests = `---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.nvidia.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared}
spec: {devices: {requests: [{name: gpu, firstAvailable: [{name: any, deviceClassName: gpu.nvidia.com}]}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: train}
spec:
  replicas: 2
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec:
      resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}, {name: other, resourceClaimName: shared}, {name: late, resourceClaimTemplateName: missing}]
      containers: [{name: c, image: x, resources: {requests: {cpu: "1"}, claims: [{name: gpu}]}}]
`

// The claims of templates are generated, with the API server's defaults, and pods with equal claims are
// one class. A missing template is the problem of its claim.
func TestPlanReadsDevices(t *testing.T) {
	batch := planFor(t, seedManifests(t)+gpuManifests, "us-east-1").Batch
	devices := batch.Snapshot.Devices
	var claims []string
	for _, claim := range devices.Claims {
		claims = append(claims, claim.Namespace+"/"+claim.Name)
	}
	if want := []string{"default/shared", "default/train-0-gpu", "default/train-1-gpu"}; !cmp.Equal(want, claims) || len(devices.Classes) != 1 {
		t.Errorf("claims %v, %d classes; want claims %v", claims, len(devices.Classes), want)
	}
	if !batch.Snapshot.Settings.PlanDRARequests || !batch.Snapshot.Settings.Gates.DRANVIDIAGPU {
		t.Errorf("settings %+v", batch.Snapshot.Settings)
	}
	for _, class := range batch.Pending {
		if len(class.Spec.Claims) == 0 {
			continue
		}
		own, shared, late := class.Spec.Claims[0], class.Spec.Claims[1], class.Spec.Claims[2]
		if len(class.Pods) != 2 || own.Name != "" || own.Requests[0].Exactly.Count != 1 || own.Requests[0].Exactly.AllocationMode != "ExactCount" {
			t.Errorf("%d pods with the claim %+v", len(class.Pods), own)
		}
		if shared.Name != "shared" || shared.Requests[0].FirstAvailable[0].Count != 1 {
			t.Errorf("the shared claim is %+v", shared)
		}
		if want := `resourceclaim of the template "default/missing" not found`; late.Problem != want {
			t.Errorf("problem %q, want %q", late.Problem, want)
		}
		return
	}
	t.Error("no pod has a claim")
}

// Without objects of Dynamic Resource Allocation a pod with claims is rejected, as in a cluster where
// it is off, and nothing is launched for it.
func TestPlanWithoutDevices(t *testing.T) {
	_, deployment, _ := strings.Cut(gpuManifests, "---\napiVersion: apps/v1")
	pool, _, _ := strings.Cut(seedManifests(t), "---\n"+"apiVersion: apps/v1")
	a := planFor(t, pool+"---\napiVersion: apps/v1"+deployment, "us-east-1")
	plan := a.Built.Plan
	if diff := cmp.Diff(planning.DeviceState{}, a.Batch.Snapshot.Devices); diff != "" || len(plan.Intents) != 0 || len(plan.Unplaced) != 1 {
		t.Fatalf("%d intents, %d classes unplaced, devices %s", len(plan.Intents), len(plan.Unplaced), diff)
	}
	if rejection := plan.Unplaced[0].Rejections[0]; rejection.Rule != planning.RulePod || !strings.Contains(rejection.Detail, "IGNORE_DRA_REQUESTS") {
		t.Errorf("rejection %+v", rejection)
	}
}

// A plan for pods with one GPU each launches only instance types with GPUs, and names their driver.
func TestPlanLaunchesDevices(t *testing.T) {
	const pool = `---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]}}}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {role: x, amiSelectorTerms: [{alias: al2023@latest}], subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}]}
`
	text := strings.Replace(gpuManifests, ", {name: other, resourceClaimName: shared}, {name: late, resourceClaimTemplateName: missing}", "", 1)
	built := planFor(t, pool+text, "us-east-1").Built
	if len(built.Plan.Unplaced) > 0 || len(built.Intents) == 0 {
		t.Fatalf("%d intents, unplaced %+v", len(built.Intents), built.Plan.Unplaced)
	}
	for i, intent := range built.Intents {
		for name := range intent.Types {
			if _, _, ok := catalog.DevicesOf(name, catalog.NVIDIADriver, catalog.GPUSharing{}); !ok {
				t.Errorf("the plan may launch %s, which has no GPU", name)
			}
		}
		for _, claim := range built.Plan.Intents[i].Claims {
			if drivers := claim.Object.Annotations[karpenter.DRADriversAnnotationKey]; drivers != catalog.NVIDIADriver {
				t.Errorf("NodeClaim %s names the drivers %q", claim.Object.Name, drivers)
			}
		}
	}
}
