package charts

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
)

const quickstart = root + "/deploy/quickstart"

// The quickstart's README shows the output of `joist plan` for its manifests.
func TestQuickstartPlans(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds the command")
	}
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "joist")
	buildProgram(t, "/services/cli", "./cmd/joist", binary)
	var out, trouble bytes.Buffer
	command := exec.CommandContext(t.Context(), binary, "plan", "-f", quickstart, "--region", "eu-west-1", "--var", "CLUSTER_NAME=prod")
	command.Stdout, command.Stderr = &out, &trouble
	var exit *exec.ExitError
	// Exit code 2: there are nodes to launch.
	if err := command.Run(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Fatalf("joist plan: %v\n%s", err, trouble.String())
	}
	golden.Compare(t, "testdata/golden/quickstart.txt", out.String())
}

var resources = map[string]schema.GroupVersionResource{
	"Deployment":   {Group: "apps", Version: "v1", Resource: "deployments"},
	"EC2NodeClass": {Group: "karpenter.k8s.aws", Version: "v1", Resource: "ec2nodeclasses"},
	"NodePool":     {Group: "karpenter.sh", Version: "v1", Resource: "nodepools"},
}

// quickstart applies the quickstart's manifests, which the API server validates with the
// installed CRDs.
func (s *site) quickstart() {
	s.Helper()
	files, err := filepath.Glob(quickstart + "/*.yaml")
	s.check(err)
	client, err := dynamic.NewForConfig(s.plane.Config)
	s.check(err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		s.check(err)
		var object unstructured.Unstructured
		s.check(yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "${CLUSTER_NAME}", "prod")), &object.Object))
		s.check(apply(s.Context(), client, &object))
	}
}

func apply(ctx context.Context, client dynamic.Interface, object *unstructured.Unstructured) error {
	resource := dynamic.ResourceInterface(client.Resource(resources[object.GetKind()]))
	if namespace := object.GetNamespace(); namespace != "" {
		resource = client.Resource(resources[object.GetKind()]).Namespace(namespace)
	}
	_, err := resource.Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}
