package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	karpoptions "sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/joist-autoscaler/joist/shared/cluster"
	hostsettings "github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// spreadObjects are the objects that default constraints depend on. It is Karpenter's client for them.
type spreadObjects struct {
	client.Client
	services []corev1.Service
	owners   map[cluster.Kind]map[cluster.Key]cluster.Object
}

func (s spreadObjects) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	list.(*corev1.ServiceList).Items = s.listServices(o.Namespace)
	return nil
}

func (s spreadObjects) listServices(namespace string) []corev1.Service {
	return slices.DeleteFunc(slices.Clone(s.services), func(one corev1.Service) bool { return one.Namespace != namespace })
}

func (s spreadObjects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind, _ := cluster.KindOf(into)
	switch found := s.owners[kind][cluster.Key{Namespace: key.Namespace, Name: key.Name}].(type) {
	case *corev1.ReplicationController:
		found.DeepCopyInto(into.(*corev1.ReplicationController))
	case *appsv1.ReplicaSet:
		found.DeepCopyInto(into.(*appsv1.ReplicaSet))
	case *appsv1.StatefulSet:
		found.DeepCopyInto(into.(*appsv1.StatefulSet))
	default:
		return errors.New("not found")
	}
	return nil
}

// defaultSpread is Joist's view of the objects.
func (s spreadObjects) defaultSpread(constraints []corev1.TopologySpreadConstraint) podspec.DefaultSpread {
	return podspec.DefaultSpread{
		Constraints: constraints,
		Services: func(namespace string) (out []*corev1.Service) {
			for _, one := range s.listServices(namespace) {
				out = append(out, &one)
			}
			return out
		},
		Find: func(kind cluster.Kind, key cluster.Key) (cluster.Object, bool) {
			found, ok := s.owners[kind][key]
			return found, ok
		},
	}
}

// drawLabels draws labels of a pod or of a selector.
func drawLabels(t *rapid.T, name string) map[string]string {
	out := map[string]string{}
	for _, key := range []string{"app", "tier"} {
		if value := rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, name+" "+key); value != "" {
			out[key] = value
		}
	}
	if len(out) == 0 && rapid.Bool().Draw(t, name+" nil") {
		return nil
	}
	return out
}

func drawSpreadObjects(t *rapid.T) spreadObjects {
	s := spreadObjects{owners: map[cluster.Kind]map[cluster.Key]cluster.Object{}}
	namespace := func() string { return rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace") }
	for i := range rapid.IntRange(0, 4).Draw(t, "services") {
		s.services = append(s.services, corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace(), Name: fmt.Sprint("s", i)}, Spec: corev1.ServiceSpec{Selector: drawLabels(t, "service")}})
	}
	for _, kind := range podspec.SpreadOwners {
		s.owners[kind] = map[cluster.Key]cluster.Object{}
		for range rapid.IntRange(0, 2).Draw(t, "owners") {
			key := cluster.Key{Namespace: namespace(), Name: rapid.SampledFrom([]string{"o", "p"}).Draw(t, "owner")}
			meta, labels := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, drawLabels(t, "owner")
			selector := &metav1.LabelSelector{MatchLabels: labels}
			switch rapid.IntRange(0, 3).Draw(t, "form") {
			case 0:
				selector = nil
			case 1:
				selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"y", "z"}}}
			}
			switch kind {
			case cluster.ReplicationControllers:
				s.owners[kind][key] = &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Selector: labels}}
			case cluster.ReplicaSets:
				s.owners[kind][key] = &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector}}
			default:
				s.owners[kind][key] = &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector}}
			}
		}
	}
	return s
}

func drawSpreadPod(t *rapid.T, i int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "pod's namespace"), Name: fmt.Sprint("p", i), Labels: drawLabels(t, "pod"),
	}}
	kinds := []string{"", "v1 ReplicationController", "apps/v1 ReplicaSet", "apps/v1 StatefulSet", "batch/v1 Job", "example.com/v1 ReplicaSet"}
	if version, kind, ok := strings.Cut(rapid.SampledFrom(kinds).Draw(t, "owner of the pod"), " "); ok {
		name := rapid.SampledFrom([]string{"o", "p"}).Draw(t, "owner's name")
		// Karpenter remembers owners by UID, so equal UIDs have equal names.
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: version, Kind: kind, Name: name, UID: types.UID(pod.Namespace + version + kind + name), Controller: new(rapid.IntRange(0, 4).Draw(t, "controller") > 0),
		}}
	}
	if rapid.IntRange(0, 5).Draw(t, "own constraints") == 0 {
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 7, TopologyKey: "own", WhenUnsatisfiable: corev1.DoNotSchedule}}
	}
	return pod
}

// sortedRequirements ignores the order of expressions, which Karpenter takes from a map.
var sortedRequirements = cmpopts.SortSlices(func(a, b metav1.LabelSelectorRequirement) bool {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator)) < 0
})

// Joist gives every pod the default constraints that Karpenter gives it.
func TestDefaultSpreadMatchesKarpenter(t *testing.T) {
	constraints := []corev1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, MinDomains: new(int32(2))},
		{MaxSkew: 3, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway},
	}
	ctx := karpoptions.ToContext(t.Context(), &karpoptions.Options{SchedulerConfig: &karpoptions.SchedulerConfiguration{
		PodTopologySpread: &karpoptions.PodTopologySpreadConfig{DefaultConstraints: constraints},
	}})
	applied := 0
	rapid.Check(t, func(rt *rapid.T) {
		objects := drawSpreadObjects(rt)
		var pods, theirs []*corev1.Pod
		for i := range rapid.IntRange(1, 5).Draw(rt, "pods") {
			pods = append(pods, drawSpreadPod(rt, i))
			theirs = append(theirs, pods[i].DeepCopy())
		}
		scheduling.NewDefaultTopologySpreadInjector(objects).Inject(ctx, theirs)
		ours := objects.defaultSpread(constraints)
		for i, pod := range pods {
			got := pod.Spec.TopologySpreadConstraints
			if ours.Applies(pod) {
				got = ours.ListConstraints(pod)
				applied += len(got)
			}
			if diff := gocmp.Diff(theirs[i].Spec.TopologySpreadConstraints, got, cmpopts.EquateEmpty(), sortedRequirements); diff != "" {
				rt.Fatalf("%+v (-Karpenter +Joist):\n%s", pod, diff)
			}
		}
	})
	if applied == 0 {
		t.Error("no pod got default constraints")
	}
}

// goTypes are the names of Go's types in errors of decoding.
var goTypes = regexp.MustCompile(`Go (value of type|struct field) [\w.]+`)

// Joist accepts what Karpenter accepts, and names a problem in the same words.
func TestSchedulerConfigMatchesKarpenter(t *testing.T) {
	one := func(fields string) string {
		return "podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}, {" + fields + "}]}"
	}
	for _, text := range []string{
		"", "{}", "podTopologySpread: {}", "podTopologySpread: {", "notARealField: true", "[]", "podTopologySpread: {defaultConstraints: {}}", "podTopologySpread: {}\npodTopologySpread: {}",
		one("maxSkew: 2, topologyKey: host, whenUnsatisfiable: DoNotSchedule"), one("maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule"),
		one("maxSkew: 2, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway"), one("maxSkew: 0, topologyKey: host, whenUnsatisfiable: ScheduleAnyway"),
		one("maxSkew: -1"), one("maxSkew: 1"), one("maxSkew: 1, topologyKey: not a name"), one("maxSkew: 1, topologyKey: host"), one("maxSkew: 1, topologyKey: host, whenUnsatisfiable: Sometimes"),
		one("maxSkew: 1, topologyKey: host, whenUnsatisfiable: DoNotSchedule, labelSelector: {}"), one("maxSkew: 1, topologyKey: host, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [app]"),
		one("maxSkew: 1, topologyKey: host, whenUnsatisfiable: DoNotSchedule, minDomains: 3, nodeTaintsPolicy: Honor"), one("maxSkews: 1"),
	} {
		config, want := karpoptions.ParseSchedulerConfiguration(text)
		read, err := hostsettings.Read(func(name string) (string, bool) { return text, name == hostsettings.Scheduler })
		if want != nil {
			if err == nil || !strings.Contains(goTypes.ReplaceAllString(err.Error(), ""), "parsing scheduler config, "+goTypes.ReplaceAllString(want.Error(), "")) {
				t.Errorf("%s: %v, and Karpenter says %v", text, err, want)
			}
			continue
		}
		var constraints []corev1.TopologySpreadConstraint
		if config != nil && config.PodTopologySpread != nil {
			constraints = config.PodTopologySpread.DefaultConstraints
		}
		if diff := gocmp.Diff(constraints, read.DefaultConstraints, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%s: %v%s", text, err, diff)
		}
	}
}
