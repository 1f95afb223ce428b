package scenario_test

import (
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

const deviceScenario = `{"instanceTypes": [` + kind + `], "nodePools": [
	{"metadata": {"name": "p"}, "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": {"name": "c"}}}}}],
	"podGroups": [{"count": 2, "template": {"metadata": {"name": "train"}, "spec": {
		"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}], "containers": [{"resources": {"requests": {"cpu": "1"}}}]}}}],
	"devices": {
		"deviceClasses": [{"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": "device.driver == 'd'"}}]}}],
		"resourceClaimTemplates": [{"metadata": {"name": "one-gpu"}, "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}}]}}`

// TestDevices checks that a scenario with devices has the claims of its pods and the devices of its
// types, also when it is converted twice, and that without devices the claims are only counted.
func TestDevices(t *testing.T) {
	text := strings.Replace(deviceScenario, `"arch":`, `"deviceTemplates": [{"driver": "d", "pool": "p", "devices": [{"name": "gpu-0"}]}], "arch":`, 1)
	s, err := scenario.Parse(nil, "s.json", []byte(text))
	if err != nil || len(s.Notes) > 0 {
		t.Fatal(err, s.Notes)
	}
	pods := s.Pods()
	for range 2 {
		batch, stock := s.Problem(pods)
		if len(batch.Pending) != 1 || len(batch.Pending[0].Pods) != 2 || len(batch.Snapshot.Devices.Claims) != 2 || len(batch.Snapshot.Devices.Classes) != 1 {
			t.Fatalf("classes %+v, devices %+v", batch.Pending, batch.Snapshot.Devices)
		}
		if claim := batch.Pending[0].Spec.Claims[0]; claim.Problem != "" || claim.Requests[0].Exactly.Count != 1 || batch.Pending[0].Pods[1].Claims[0] != "train-1-gpu" {
			t.Errorf("claim %+v of %+v", claim, batch.Pending[0].Pods[1])
		}
		if types := stock.ByNodeClass["c"]; len(types) != 1 || len(types[0].DeviceTemplates) != 1 || !batch.Snapshot.Settings.PlanDRARequests {
			t.Errorf("types %+v", types)
		}
	}
	plain, _, _ := strings.Cut(deviceScenario, `,
	"devices"`)
	off, err := scenario.Parse(nil, "s.json", []byte(plain+"}"))
	if err != nil {
		t.Fatal(err)
	}
	batch, _ := off.Problem(off.Pods())
	if spec := batch.Pending[0].Spec; spec.ResourceClaims != 1 || spec.Claims != nil || batch.Snapshot.Settings != (planning.Settings{}) {
		t.Errorf("without devices: %+v", spec)
	}
}
