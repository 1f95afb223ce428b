package documents

import (
	"os"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
)

// symptoms are errors that the documents show or mention, and errors that their steps cause. The steps reproduce the errors that
// are possible here.
var symptoms = []string{
	`exec plugin: invalid apiVersion "client.authentication.k8s.io/v1alpha1"`,
	"Service role name AWSServiceRoleForEC2Spot has been taken in this account",
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted",
	"failed calling webhook",
	`no matches for kind "Provisioner"`, `"AWSNodeTemplate"`,
	"karpenter.sh/v1alpha5", "v1beta1",
	`unknown field "spec.limit"`,
	"UnauthorizedOperation", "AccessDenied",
	"SubnetsNotFound", "SecurityGroupsNotFound", "UnsupportedAlias", "TagValidationFailed", "InstanceProfileNotFound", "InvalidBlockDeviceMapping",
	"QueueDoesNotExist",
	"cannot unmarshal bool",
	"Pods stay pending", "limits",
	"variable-unset",
	"pause:3.7",
}

// TestSymptoms requires that the troubleshooting page has each symptom.
func TestSymptoms(t *testing.T) {
	text := readTroubleshooting(t)
	for _, symptom := range symptoms {
		if !strings.Contains(text, symptom) {
			t.Errorf("the troubleshooting page has no %q", symptom)
		}
	}
}

func readTroubleshooting(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(testbed.Root + "/deploy/docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
