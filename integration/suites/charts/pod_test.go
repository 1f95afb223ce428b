package charts

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/helm"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/topology"
)

func (g given) deployments(t *testing.T) map[string]*appsv1.Deployment {
	t.Helper()
	objects, err := helm.Objects(g.render(t, "--show-only", "templates/deployments.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*appsv1.Deployment{}
	for _, object := range objects {
		d := object.(*appsv1.Deployment)
		found[d.Labels["app.kubernetes.io/component"]] = d
	}
	if len(found) != 2 {
		t.Fatalf("%d Deployments", len(found))
	}
	return found
}

// With any values, the rendered objects have only fields of their kind. ServiceMonitors
// are not checked, because they are not built-in.
func TestRenderedFieldsAreKnown(t *testing.T) {
	for _, g := range cases(t) {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			g.flags = nil
			objects, err := helm.Objects(g.render(t))
			if err != nil {
				t.Fatal(err)
			}
			if len(objects) < 18 {
				t.Errorf("%d objects", len(objects))
			}
		})
	}
}

// With any values except hostNetwork, about which NOTES.txt warns, the pods meet the
// restricted standard
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/). TestInstall
// checks the same with an API server.
func TestPodsAreRestricted(t *testing.T) {
	for _, g := range cases(t) {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for service, d := range g.deployments(t) {
				pod := d.Spec.Template.Spec
				if pod.HostPID || pod.HostIPC || pod.HostNetwork != (g.name == "everything") {
					t.Errorf("%s uses a namespace of the host", service)
				}
				if pod.SecurityContext == nil || pod.SecurityContext.SeccompProfile == nil || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
					t.Errorf("%s has no seccomp profile", service)
				}
				for _, problem := range unconfined(pod.Containers[0].SecurityContext) {
					t.Errorf("%s: %s", service, problem)
				}
				for _, volume := range pod.Volumes {
					if volume.HostPath != nil {
						t.Errorf("%s mounts the host's folder %s", service, volume.HostPath.Path)
					}
				}
			}
		})
	}
}

func unconfined(c *corev1.SecurityContext) []string {
	var problems []string
	deny := func(bad bool, what string) {
		if bad {
			problems = append(problems, what)
		}
	}
	deny(c.Privileged == nil || *c.Privileged, "privileged")
	deny(c.AllowPrivilegeEscalation == nil || *c.AllowPrivilegeEscalation, "may gain privileges")
	deny(c.ReadOnlyRootFilesystem == nil || !*c.ReadOnlyRootFilesystem, "has a writable root file system")
	deny(c.RunAsNonRoot == nil || !*c.RunAsNonRoot, "may run as root")
	deny(c.RunAsUser == nil || *c.RunAsUser == 0, "runs as root")
	deny(c.Capabilities == nil || !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(c.Capabilities.Add) > 0, "has capabilities")
	return problems
}

// Terms between pods select the service's own pods, and no pod of Joist may run on a node
// that Joist manages.
func TestPlacement(t *testing.T) {
	for service, d := range (given{namespace: "joist", set: needed}).deployments(t) {
		pod := d.Spec.Template.Spec
		want := d.Spec.Selector
		if want.MatchLabels["app.kubernetes.io/component"] != service {
			t.Errorf("got selector %v", want)
		}
		if diff := cmp.Diff(want, pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(want, pod.TopologySpreadConstraints[0].LabelSelector); diff != "" {
			t.Error(diff)
		}
		term := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0]
		if term.Key != "karpenter.sh/nodepool" || term.Operator != corev1.NodeSelectorOpDoesNotExist {
			t.Errorf("got node affinity %v", term)
		}
		if pod.PriorityClassName != "system-cluster-critical" || *d.Spec.Replicas != 2 {
			t.Errorf("got priority %s and %d replicas", pod.PriorityClassName, *d.Spec.Replicas)
		}
	}
}

// environ returns a container's environment, with its field references resolved.
func environ(d *appsv1.Deployment) map[string]string {
	found := map[string]string{}
	for _, v := range d.Spec.Template.Spec.Containers[0].Env {
		found[v.Name] = v.Value
		if v.ValueFrom != nil {
			found[v.Name] = v.ValueFrom.FieldRef.FieldPath
		}
	}
	return found
}

// A pod's environment has all variables that its service requires, and only variables
// that its main reads, except Go's own and the user's. The values "everything" set every
// optional variable.
func TestEnvironmentMatchesServices(t *testing.T) {
	names := variables(t)
	for service, d := range cases(t)[1].deployments(t) {
		got := environ(d)
		read := map[string]bool{}
		for _, name := range mentioned(t, "../../../services/"+service+"/cmd/joist-"+service+"/main.go") {
			read[names[name]] = true
		}
		for _, name := range []string{settings.ClusterName, settings.Region, settings.LogLevel, settings.MetricsPort, settings.HealthPort, settings.Traces, settings.CloudWatch} {
			read[name] = true
		}
		for _, aside := range []string{"GOMEMLIMIT", "GOGC", "HTTPS_PROXY"} {
			delete(got, aside)
		}
		// POD_NAME comes from the pod's field; the other exceptions are not set on purpose.
		for _, aside := range []string{settings.Kubeconfig, settings.Profiling} {
			delete(read, aside)
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(read)), slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("%s reads (-) and is given (+):\n%s", service, diff)
		}
	}
}

// variables returns the names of shared/host/settings's constants.
func variables(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	ast.Inspect(parse(t, "../../../shared/host/settings/variable.go"), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if len(spec.Values) > i {
				if text, isText := spec.Values[i].(*ast.BasicLit); isText {
					found[name.Name], _ = strconv.Unquote(text.Value)
				}
			}
		}
		return true
	})
	return found
}

// mentioned returns the constants of shared/host/settings that a main uses.
func mentioned(t *testing.T, file string) []string {
	t.Helper()
	var found []string
	ast.Inspect(parse(t, file), func(n ast.Node) bool {
		if list, ok := n.(*ast.CompositeLit); ok {
			for _, item := range list.Elts {
				if s, isSelector := item.(*ast.SelectorExpr); isSelector && fmt.Sprint(s.X) == "settings" {
					found = append(found, s.Sel.Name)
				}
			}
		}
		return true
	})
	return found
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return syntax
}

// The chart's defaults are the services' defaults: the result equals that of the required
// values alone.
func TestDefaultsMatchServices(t *testing.T) {
	for service, d := range (given{namespace: "joist", set: needed}).deployments(t) {
		all := environ(d)
		reported := map[string]string{}
		for _, name := range []string{
			settings.ClusterName, settings.Region, settings.Bucket, settings.Prefix, settings.Holder, settings.Namespace, settings.QueueURL,
			settings.DeadLetterURL, settings.PlannerURL, settings.DisruptionURL, settings.CatalogURL, settings.LauncherURL,
		} {
			reported[name] = all[name]
		}
		if diff := cmp.Diff(read(t, reported), read(t, all), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Errorf("%s: the services' defaults (-) and the chart's (+):\n%s", service, diff)
		}
	}
}

func read(t *testing.T, environ map[string]string) settings.Settings {
	t.Helper()
	s, err := settings.Read(func(name string) (string, bool) {
		text, ok := environ[name]
		return text, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The chart and the topology have the same names of queues.
func TestQueuesMatchTopology(t *testing.T) {
	plan, err := topology.NewPlan(topology.Cluster{Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	found := (given{namespace: "joist", set: needed}).deployments(t)
	watcher, lifecycle := environ(found["watcher"]), environ(found["lifecycle"])
	for service, url := range map[string]string{
		"planner": watcher[settings.PlannerURL], "disruption": watcher[settings.DisruptionURL], "catalog": watcher[settings.CatalogURL],
		"launcher": lifecycle[settings.LauncherURL], "lifecycle": lifecycle[settings.QueueURL],
	} {
		q, _ := plan.Queue(service)
		if path.Base(url) != q.Name || !strings.HasPrefix(url, "https://sqs.eu-west-1.amazonaws.com/111122223333/") {
			t.Errorf("%s has the queue URL %s, want the queue %s", service, url, q.Name)
		}
	}
	if q, _ := plan.Queue("lifecycle"); path.Base(lifecycle[settings.DeadLetterURL]) != q.Dead {
		t.Errorf("got DLQ %s, want %s", lifecycle[settings.DeadLetterURL], q.Dead)
	}
}

// Go's memory limit is nine tenths of the container's, in any unit, unless the values set
// it.
func TestMemoryLimit(t *testing.T) {
	for limit, want := range map[string]string{
		"512Mi": "483183820", "1.5Gi": "1449551462", "2G": "1800000000", "1000000000": "900000000", "1e9": "900000000",
	} {
		file := filepath.Join(t.TempDir(), "values.yaml")
		text := fmt.Sprintf("controller: {resources: {limits: {memory: %q}}}\n", limit)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for service, d := range (given{namespace: "joist", set: needed, files: []string{file}}).deployments(t) {
			if got := environ(d)["GOMEMLIMIT"]; got != want {
				t.Errorf("%s with %s: GOMEMLIMIT is %q, want %q", service, limit, got, want)
			}
		}
	}
}
