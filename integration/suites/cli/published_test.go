package cli

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/joist-autoscaler/joist/integration/environment/controlplane"
	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/services/cli"
)

// withClass are published manifests that need another one: the settings of a kubelet move to an EC2NodeClass.
var withClass = map[string]string{"seed-004-18.yaml": "seed-004-06.yaml"}

// named are published manifests that cannot be converted, and what the command says about them.
var named = map[string]string{
	"seed-002-01.yaml": "duplicate key name",             // an eksctl file without indentation
	"seed-003-01.yaml": "value is not allowed",           // the same, with half of its indentation
	"seed-004-33.yaml": "metadata.name: missing",         // a part of a Deployment
	"seed-004-18.yaml": "which is not in the files: add", // without its EC2NodeClass
}

// TestPublishedManifests converts each manifest of published guides about Karpenter. A strict API server accepts the
// results, also of node groups, and joist plan plans them.
func TestPublishedManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/manifests/*.yaml")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var results []string
	for _, file := range files {
		name := filepath.Base(file)
		text, remarks, code := runOffline(t, "", "convert", "-f", file)
		if want, ok := named[name]; ok {
			if code != cli.ExitChanges || !strings.Contains(remarks, want) || !strings.Contains(remarks, "unrepaired") {
				t.Errorf("%s: code %d, remarks %s, want %q", name, code, remarks, want)
			}
			if withClass[name] == "" {
				continue
			}
			text, remarks, code = runOffline(t, "", "convert", "-f", "testdata/manifests/"+withClass[name], "-f", file)
		}
		if code == cli.ExitError || strings.Contains(remarks, "unrepaired:") {
			t.Errorf("%s: code %d\n%s", name, code, remarks)
			continue
		}
		if again, more, _ := runOffline(t, text, "convert", "-f", "-"); again != text {
			t.Errorf("%s: converting again changes the result:\n%s\n%s", name, again, more)
		}
		results = append(results, text)
		if isPlannedText(text) {
			if _, trouble, code := runOffline(t, text, "plan", "-f", "-", "--region", "ap-northeast-2", "--var", "CLUSTER_NAME=prod"); code == cli.ExitError {
				t.Errorf("%s cannot be planned: %s\n%s", name, trouble, text)
			}
		}
	}
	groups, _, _ := runOffline(t, "", "convert", "-f", "testdata/groups.json")
	results = append(results, groups)
	t.Run("server", func(t *testing.T) {
		if testing.Short() {
			t.Skip("-short: runs a control plane")
		}
		createStrictly(t, results)
	})
}

func isPlannedText(text string) bool {
	return strings.Contains(text, "kind: NodePool") || strings.Contains(text, "kind: EC2NodeClass") || strings.Contains(text, "kind: Deployment")
}

// runOffline runs a command without AWS and Kubernetes.
func runOffline(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, trouble bytes.Buffer
	code = cli.Run(t.Context(), cli.Env{
		Args: args, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &trouble, Now: func() time.Time { return noon },
	})
	return out.String(), trouble.String(), code
}

// createStrictly creates the objects of each text in an API server that rejects unknown fields, and deletes them.
func createStrictly(t *testing.T, texts []string) {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{CRDs: testbed.Root + "/deploy/charts/joist-crd/files", NoKwok: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.Stop() })
	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(plane.Config))
	if err != nil {
		t.Fatal(err)
	}
	mapper, client := restmapper.NewDiscoveryRESTMapper(groups), dynamic.NewForConfigOrDie(plane.Config)
	created := 0
	for _, text := range texts {
		for _, object := range decodeObjects(t, text) {
			kind := object.GroupVersionKind()
			mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				t.Errorf("%v: %v", kind, err)
				continue
			}
			resource := dynamic.ResourceInterface(client.Resource(mapping.Resource))
			if mapping.Scope.Name() == "namespace" {
				resource = client.Resource(mapping.Resource).Namespace("default")
			}
			options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
			if _, err := resource.Create(t.Context(), object, options); err != nil {
				t.Errorf("%s %s: %v\n%s", kind.Kind, object.GetName(), err, text)
			}
			created++
		}
	}
	if created < len(texts)/2 {
		t.Errorf("%d objects in %d files", created, len(texts))
	}
}

// decodeObjects returns the objects of a YAML text.
func decodeObjects(t *testing.T, text string) (out []*unstructured.Unstructured) {
	t.Helper()
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.Unmarshal(document, &object.Object)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			out = append(out, object)
		}
	}
}

// TestNodeGroups converts the groups of Cluster Autoscaler that the package convert has as test data, and plans the
// result.
func TestNodeGroups(t *testing.T) {
	t.Parallel()
	text, remarks, code := runOffline(t, "", "convert", "-f", "testdata/groups.json")
	if code != cli.ExitChanges || strings.Contains(remarks, "unrepaired:") {
		t.Fatalf("code %d\n%s", code, remarks)
	}
	const pods = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  replicas: 2\n  selector: {matchLabels: {a: b}}\n  template:\n" +
		"    metadata: {labels: {a: b}}\n    spec:\n      nodeSelector: {team: web}\n      tolerations: [{operator: Exists}]\n      containers: [{name: a, image: b, resources: {requests: {cpu: 1}}}]\n"
	plan, trouble, code := runOffline(t, text+pods, "plan", "-f", "-", "--region", "eu-west-1")
	if code != cli.ExitChanges || !strings.Contains(plan, "m6g.large") {
		t.Errorf("code %d\n%s%s", code, plan, trouble)
	}
}
