package charts

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/helm"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// rendered returns the rendered objects of a type.
func rendered[T any](t *testing.T, g given) []T {
	t.Helper()
	g.flags = nil
	objects, err := helm.Objects(g.render(t))
	if err != nil {
		t.Fatal(err)
	}
	var found []T
	for _, object := range objects {
		if one, ok := object.(T); ok {
			found = append(found, one)
		}
	}
	return found
}

// testPod returns the pod of `helm test`.
func (g given) testPod(t *testing.T) *corev1.Pod {
	t.Helper()
	pods := rendered[*corev1.Pod](t, g)
	if len(pods) != 1 {
		t.Fatalf("%d pods", len(pods))
	}
	return pods[0]
}

// images returns the images of a release, without those of the user's sidecars.
func (g given) images(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, d := range g.deployments(t) {
		found = append(found, d.Spec.Template.Spec.Containers[0].Image)
	}
	slices.Sort(found)
	if tester := g.testPod(t).Spec.Containers[0].Image; tester != found[0] {
		t.Errorf("the test pod has the image %s, want that of lifecycle, %s", tester, found[0])
	}
	return found
}

func TestImages(t *testing.T) {
	t.Parallel()
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, c := range []struct {
		name string
		set  []string
		want [2]string
	}{
		{"the release's", nil, [2]string{"ghcr.io/joist-autoscaler/joist-lifecycle:TAG", "ghcr.io/joist-autoscaler/joist-watcher:TAG"}},
		{"a repository that is set to nothing", []string{"controller.image.repository="}, [2]string{"ghcr.io/joist-autoscaler/joist-lifecycle:TAG", "ghcr.io/joist-autoscaler/joist-watcher:TAG"}},
		{"Karpenter's", []string{"controller.image.repository=public.ecr.aws/karpenter/controller", "controller.image.tag=1.14.0", "controller.image.digest=" + digest},
			[2]string{"ghcr.io/joist-autoscaler/joist-lifecycle:TAG", "ghcr.io/joist-autoscaler/joist-watcher:TAG"}},
		{"another tag", []string{"controller.image.tag=v2"}, [2]string{"ghcr.io/joist-autoscaler/joist-lifecycle:v2", "ghcr.io/joist-autoscaler/joist-watcher:v2"}},
		{"a digest", []string{"watcher.image.digest=" + digest}, [2]string{"ghcr.io/joist-autoscaler/joist-lifecycle:TAG", "ghcr.io/joist-autoscaler/joist-watcher:TAG@" + digest}},
		{"a mirror", []string{"global.imageRegistry=mirror.example.com"}, [2]string{"mirror.example.com/joist-autoscaler/joist-lifecycle:TAG", "mirror.example.com/joist-autoscaler/joist-watcher:TAG"}},
		{"a mirror of another repository", []string{"global.imageRegistry=mirror:5000/", "controller.image.repository=localhost/a/b/"}, [2]string{"mirror:5000/a/b/joist-lifecycle:TAG", "mirror:5000/a/b/joist-watcher:TAG"}},
		{"a mirror of a repository without a registry", []string{"global.imageRegistry=mirror/x", "controller.image.repository=a/b"}, [2]string{"mirror/x/a/b/joist-lifecycle:TAG", "mirror/x/a/b/joist-watcher:TAG"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := strings.Split(strings.ReplaceAll(strings.Join(c.want[:], " "), "TAG", "v"+readMetadata(t, helm.Joist).AppVersion), " ")
			if diff := cmp.Diff(want, (given{namespace: "joist", set: append(slices.Clone(needed[:3]), c.set...)}).images(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// With dashboards.enabled there is a ConfigMap for each dashboard, with its text unchanged.
func TestDashboards(t *testing.T) {
	t.Parallel()
	if maps := rendered[*corev1.ConfigMap](t, given{namespace: "joist", set: needed}); len(maps) != 1 {
		t.Errorf("by default there are %d ConfigMaps, want only the notes", len(maps))
	}
	want := map[string]string{}
	for _, name := range []string{"joist-health.json", "joist-overview.json"} {
		text, err := os.ReadFile(grafana + name)
		if err != nil {
			t.Fatal(err)
		}
		want[name] = strings.TrimSuffix(string(text), "\n")
	}
	for _, c := range []struct {
		set       []string
		namespace string
		label     [2]string
	}{
		{nil, "joist", [2]string{"grafana_dashboard", "1"}},
		{[]string{"dashboards.namespace=monitoring", "dashboards.label=example.com/board", "dashboards.labelValue=yes"}, "monitoring", [2]string{"example.com/board", "yes"}},
	} {
		got := map[string]string{}
		set := slices.Concat([]string{"dashboards.enabled=true", "dashboards.annotations.grafana_folder=Joist"}, needed, c.set)
		for _, m := range rendered[*corev1.ConfigMap](t, given{namespace: "joist", set: set}) {
			if m.Name == "notes" {
				continue
			}
			if m.Namespace != c.namespace || m.Labels[c.label[0]] != c.label[1] || m.Annotations["grafana_folder"] != "Joist" {
				t.Errorf("with %v %s is in %s with the labels %v and annotations %v", c.set, m.Name, m.Namespace, m.Labels, m.Annotations)
			}
			maps.Copy(got, m.Data)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// metadata is a Chart.yaml.
type metadata struct {
	Name, Version, AppVersion, Icon string
	Annotations                     map[string]string
}

func readMetadata(t *testing.T, chart string) metadata {
	t.Helper()
	text, err := os.ReadFile(chart + "/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var m metadata
	if err := yaml.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// read parses the YAML in an annotation. An unknown field is an error: Artifact Hub skips a
// version of the chart whose annotations it cannot read.
func (m metadata) read(t *testing.T, annotation string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(m.Annotations["artifacthub.io/"+annotation]), into); err != nil {
		t.Errorf("%s has an annotation %s that Artifact Hub cannot read: %v", m.Name, annotation, err)
	}
}

// Chart.yaml has the annotations of https://artifacthub.io/docs/topics/annotations/helm, with
// the images and CRDs of the charts.
func TestArtifactHub(t *testing.T) {
	t.Parallel()
	type link struct{ Name, URL string }
	for _, chart := range []string{helm.Joist, helm.Definitions} {
		m := readMetadata(t, chart)
		var changes []struct {
			Kind, Description string
			Links             []link
		}
		m.read(t, "changes", &changes)
		for _, change := range changes {
			if !slices.Contains([]string{"added", "changed", "deprecated", "removed", "fixed", "security"}, change.Kind) || change.Description == "" {
				t.Errorf("%s has the change %+v", m.Name, change)
			}
		}
		var links []link
		m.read(t, "links", &links)
		for _, l := range links {
			_, path, found := strings.Cut(l.URL, "/main/")
			if _, err := os.Stat(filepath.Join(root, path)); !found || err != nil {
				t.Errorf("%s has a link to %s, which the repository does not have", m.Name, l.URL)
			}
		}
		_, icon, _ := strings.Cut(m.Icon, "/main/")
		if _, err := os.Stat(filepath.Join(root, icon)); icon == "" || err != nil {
			t.Errorf("%s has the icon %s, which the repository does not have", m.Name, m.Icon)
		}
		if len(changes) == 0 || len(links) == 0 || m.Version != m.AppVersion {
			t.Errorf("%s has %d changes, %d links, and the versions %s and %s", m.Name, len(changes), len(links), m.Version, m.AppVersion)
		}
		if m.Name == "joist" {
			judgeImages(t, m)
		} else {
			judgeDefinitions(t, m)
		}
	}
}

func judgeImages(t *testing.T, m metadata) {
	t.Helper()
	var images []struct{ Name, Image string }
	m.read(t, "images", &images)
	var got []string
	for _, i := range images {
		if !strings.HasSuffix(i.Image, "/"+i.Name+":v"+m.AppVersion) {
			t.Errorf("the annotation has for %s the image %s", i.Name, i.Image)
		}
		got = append(got, i.Image)
	}
	slices.Sort(got)
	if diff := cmp.Diff((given{namespace: "joist", set: needed[:3]}).images(t), got); diff != "" {
		t.Errorf("the chart's images (-) and the annotation's (+):\n%s", diff)
	}
}

func judgeDefinitions(t *testing.T, m metadata) {
	t.Helper()
	var listed []struct{ Kind, Version, Name, DisplayName, Description string }
	m.read(t, "crds", &listed)
	var got, want []string
	for _, d := range listed {
		got = append(got, fmt.Sprint(d.Kind, " ", d.Version, " ", d.Name))
		if d.DisplayName == "" || d.Description == "" {
			t.Errorf("%s is not described", d.Name)
		}
	}
	files, err := filepath.Glob(helm.Definitions + "/files/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Metadata struct{ Name string }
			Spec     struct {
				Names    struct{ Kind string }
				Versions []struct{ Name string }
			}
		}
		if err := yaml.Unmarshal(bytes.TrimSpace(text), &d); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint(d.Spec.Names.Kind, " ", d.Spec.Versions[0].Name, " ", d.Metadata.Name))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the CRDs (-) and the annotation's (+):\n%s", diff)
	}
}
