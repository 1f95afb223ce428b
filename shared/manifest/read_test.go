package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

const pool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  limits: {cpu: %s}
  weight:
  template:
    metadata:
    spec:
      requirements: []
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
`

// read reads a text without problems.
func read(t *testing.T, text string, opts ...manifest.Option) []manifest.Document {
	t.Helper()
	documents, err := manifest.Read("x.yaml", []byte(text), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// problems returns the problems of a text.
func problems(t *testing.T, text string) *manifest.Problems {
	t.Helper()
	documents, err := manifest.Read("x.yaml", []byte(text))
	var found *manifest.Problems
	if !errors.As(err, &found) || !fault.Is(err, fault.Invalid) || documents != nil {
		t.Fatalf("Read = %d documents, %v; want none, and problems", len(documents), err)
	}
	return found
}

func TestDefaultsOfTheAPIServer(t *testing.T) {
	p := read(t, fmt.Sprintf(pool, "20"))[0].Object.(*karpenter.NodePool)
	if got := p.Spec.Template.Spec.ExpireAfter; got.IsNever() || *got.Duration != 720*time.Hour {
		t.Errorf("expireAfter = %s, want 720h", got)
	}
	if p.Spec.Weight != nil {
		t.Errorf("weight = %d, want none: a null is an absent field", *p.Spec.Weight)
	}
	if d := p.Spec.Disruption; len(d.Budgets) != 1 || d.Budgets[0].Nodes != "10%" || d.ConsolidationPolicy != "WhenEmptyOrUnderutilized" || d.ConsolidateAfter.String() != "0s" {
		t.Errorf("disruption = %+v", d)
	}
	if p.Kind != "NodePool" || p.APIVersion != "karpenter.sh/v1" {
		t.Errorf("type = %s of %s", p.Kind, p.APIVersion)
	}
}

func TestExpand(t *testing.T) {
	text := fmt.Sprintf(pool, "${CPU}") + "---\n" + strings.ReplaceAll(fmt.Sprintf(pool, "1"), "default", `"${NAME}"`)
	documents := read(t, text, manifest.Expand(map[string]string{"CPU": "20", "OTHER": "x"}))
	cpu := documents[0].Object.(*karpenter.NodePool).Spec.Limits[corev1.ResourceCPU]
	if cpu.String() != "20" {
		t.Errorf("cpu = %s, want 20", cpu.String())
	}
	warned := fmt.Sprint(manifest.Lint(documents))
	if !strings.Contains(warned, "x.yaml:15:12: metadata.name: the placeholder ${NAME} is not filled in") {
		t.Errorf("warnings = %s", warned)
	}
	want := `x.yaml:5:17: spec.limits.cpu: expected a quantity such as 500m, 2 or 4Gi, got "${CPU}": fill in the placeholder first`
	if got := problems(t, fmt.Sprintf(pool, `"${CPU}"`)).Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A NodePool of another provider gets one warning, and none about what Joist would launch for it.
func TestLintOfOtherProviders(t *testing.T) {
	text := strings.Replace(fmt.Sprintf(pool, "1"), "group: karpenter.k8s.aws, kind: EC2NodeClass", "group: eks.amazonaws.com, kind: NodeClass", 1)
	warned := manifest.Lint(read(t, strings.Replace(text, "  limits: {cpu: 1}\n", "", 1)))
	if len(warned) != 1 || !strings.Contains(warned[0].String(), "NodeClass.eks.amazonaws.com is not an EC2NodeClass: Joist leaves this NodePool to its own provider") {
		t.Errorf("warnings = %v", warned)
	}
}

func TestScalarsMatchKubectl(t *testing.T) {
	text := `apiVersion: v1
kind: Pod
metadata:
  name: p
  labels: {empty: , text: !!str 5, octal: "0644"}
  annotations: {folded: >-
      a
      b
    }
spec:
  hostNetwork: yes
  priority: 1_000
  containers:
  - &c
    name: a
    image: b
    resources: {requests: {cpu: .5, memory: 1e3}}
  - <<: *c
    name: second
  volumes:
  - {name: v, secret: {secretName: s, defaultMode: 0644}}
`
	text = strings.Replace(text, "  annotations: {folded: >-\n      a\n      b\n    }\n", "  annotations:\n    folded: >-\n      a\n      b\n", 1)
	p := read(t, text)[0].Object.(*corev1.Pod)
	second := p.Spec.Containers[1]
	cpu, memory := second.Resources.Requests[corev1.ResourceCPU], second.Resources.Requests[corev1.ResourceMemory]
	got := []any{p.Labels, p.Annotations["folded"], p.Spec.HostNetwork, *p.Spec.Priority, second.Name, second.Image, cpu.MilliValue(), memory.Value(), *p.Spec.Volumes[0].Secret.DefaultMode}
	want := []any{map[string]string{"empty": "", "text": "5", "octal": "0644"}, "a b", true, int32(1000), "second", "b", int64(500), int64(1000), int32(0o644)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPlaces(t *testing.T) {
	text := "\uFEFF# a comment\r\n---\r\n" + strings.ReplaceAll(fmt.Sprintf(pool, "20"), "\n", "\r\n")
	d := read(t, text)[0]
	for path, want := range map[string]string{
		"":                           "x.yaml:3:1",
		"spec.limits.cpu":            "x.yaml:7:12",
		"spec.limits.memory":         "x.yaml:7:3",
		"spec.disruption.budgets[3]": "x.yaml:6:1",
		"nonsense":                   "x.yaml:3:1",
	} {
		if got := d.At(path).String(); got != want {
			t.Errorf("At(%q) = %s, want %s", path, got, want)
		}
	}
}

func TestLimits(t *testing.T) {
	var manyFields, bomb strings.Builder
	fmt.Fprintf(&manyFields, pool, "1")
	for i := range 30 {
		fmt.Fprintf(&manyFields, "field%d: 1\n", i)
	}
	bomb.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  managedFields:\n  - fieldsV1:\n      a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 8 {
		ref := fmt.Sprintf("*a%d", i)
		fmt.Fprintf(&bomb, "      a%d: &a%d [%s]\n", i+1, i+1, strings.Join([]string{ref, ref, ref, ref, ref, ref, ref, ref, ref, ref}, ", "))
	}
	var keys strings.Builder
	for i := range 10_002 {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"more problems than the limit", manyFields.String(), "and 10 more"},
		{"deep flow", "a: " + strings.Repeat("[", 100_000), "nested deeper than 100 levels"},
		{"deep block", strings.Repeat("- ", 100_000) + "a", "nested deeper than 100 levels"},
		{"deep tags", "a: " + strings.Repeat("!!map ", 10_000) + "b", "nested deeper than 100 levels"},
		{"wide", keys.String(), "more than 10000 keys"},
		{"wide flow", "a: {" + strings.Repeat("a: b, ", 10_001) + "}", "more than 10000 keys"},
		{"aliases that multiply", bomb.String(), "aliases expand to more than"},
		{"an alias of itself", "apiVersion: v1\nkind: Pod\nmetadata: &m {name: a, annotations: {a: *m}}\n", "nested deeper"},
		{"an alias of nothing", "apiVersion: v1\nkind: Pod\nmetadata: {name: *a}\n", "x.yaml:3:18: metadata.name: the alias *a has no anchor"},
		{"many documents", strings.Repeat("---\na: b\n", 10_001), "10001 documents, more than 10000"},
		{"not UTF-8", "a: b\nc: \xff\n", "x.yaml:2: this line is not UTF-8"},
		{"not text", "a: \x00\n", "zero byte"},
		{"an empty item", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  -\n", "spec.containers[0]: the item is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := problems(t, tt.text).Error(); !strings.Contains(got, tt.want) {
				t.Errorf("got %.500s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "\n\n", "# only a comment\n", "---\n---\n", "%YAML 1.2\n", "---\nnull\n", "apiVersion: v1\nkind: List\nitems: []\n"} {
		if documents := read(t, text); len(documents) != 0 {
			t.Errorf("Read(%q) = %v", text, documents)
		}
	}
}

func TestObjectsSkipsOtherKinds(t *testing.T) {
	documents := read(t, "apiVersion: v1\nkind: Endpoints\nmetadata: {name: a}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b}\n")
	objects := manifest.Objects(documents)
	if len(documents) != 2 || len(objects) != 1 {
		t.Fatalf("%d documents, %d objects", len(documents), len(objects))
	}
	if _, ok := objects[0].(*appsv1.Deployment); !ok {
		t.Errorf("object is a %T", objects[0])
	}
}

// TestManyKeysAreNotDeep: a flow mapping with many keys is not deep.
func TestManyKeysAreNotDeep(t *testing.T) {
	var labels strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&labels, "k%d: v, ", i)
	}
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {" + labels.String() + "}}\n"
	documents, err := manifest.Read("x.yaml", []byte(text))
	if err != nil || len(documents[0].Object.GetLabels()) != 5_000 {
		t.Errorf("error %v", err)
	}
}
