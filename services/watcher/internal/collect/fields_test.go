package collect_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// No field that a decision reads is trimmed: for any value of any field, trimmed objects give the
// same documents as whole ones. The test sets one field after another in objects that are in use.
func TestTrimsKeepEveryFieldThatIsRead(t *testing.T) {
	trims, base := podspec.Trims(), inUse()
	unchanged := documents(t, base)
	if trimmed := documents(t, trimmedOf(trims, base)); trimmed != unchanged {
		t.Fatalf("trimming changes the documents (-whole +trimmed):\n%s", cmp.Diff(unchanged, trimmed))
	}
	for kind, trim := range trims {
		t.Run(kind.Kind, func(t *testing.T) {
			changes := 0
			for i, object := range base {
				if of, _ := cluster.KindOf(object); of != kind {
					continue
				}
				before := copyOf(object)
				trim.Clear(before)
				for _, c := range changesOf(reflect.TypeOf(object).Elem(), kind.Kind, 0) {
					objects := slices.Clone(base)
					objects[i] = copyOf(object)
					if !c.apply(reflect.ValueOf(objects[i]).Elem()) {
						continue
					}
					changes++
					want, after := unchanged, copyOf(objects[i])
					if trim.Clear(after); !equality.Semantic.DeepEqual(before, after) {
						want = documents(t, trimmedOf(trims, objects))
					}
					if documents(t, objects) != want {
						t.Errorf("%s of %s affects the documents, but is trimmed", c.path, object.GetName())
					}
				}
			}
			if changes < 60 {
				t.Fatalf("tested only %d changes, want at least 60", changes)
			}
		})
	}
}

// inUse returns objects of all trimmed kinds that decisions read, and the objects that refer to
// them.
func inUse() []cluster.Object {
	ready := func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))},
			{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
		}
		n.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}
	}
	asked := func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "web"}
		p.Spec.Containers[0].Resources.Limits = list("cpu", "1")
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Resources: &corev1.ResourceRequirements{Requests: list("cpu", "2")}}}
	}
	template := func(t *corev1.PodTemplateSpec) {
		t.Labels = map[string]string{"app": "web"}
		t.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list("cpu", "1")}}}
	}
	objects := []cluster.Object{
		node("n", ready), claim("c", registered),
		pod("runs", "n", asked, owner("ReplicaSet"), usesDevice("used")), pod("waits", "", asked, usesDevice("free")),
		deviceClass("gpu"), resourceSlice("s", "n", "gpu-0"), resourceClaim("free"), allocate(resourceClaim("used"), "n"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		spreadSource("Service", map[string]string{"app": "web"}),
	}
	for _, kind := range []string{"ReplicationController", "ReplicaSet", "StatefulSet"} {
		objects = append(objects, spreadSource(kind, map[string]string{"app": "web"}), pod("of-"+strings.ToLower(kind), "n", owner(kind)))
	}
	set, alive := &appsv1.DaemonSet{}, &appsv1.DaemonSet{}
	set.Namespace, set.Name, set.UID = "default", "set", "set"
	alive.Namespace, alive.Name, alive.UID = "default", "x", "x"
	template(&set.Spec.Template)
	scaled := []cluster.Object{deployment("web", 2), &appsv1.StatefulSet{}, &appsv1.ReplicaSet{}}
	two := int32(2)
	for _, o := range scaled {
		o.SetNamespace("default")
		o.SetName("web")
		switch o := o.(type) {
		case *appsv1.StatefulSet:
			o.Spec.Replicas = &two
			template(&o.Spec.Template)
		case *appsv1.ReplicaSet:
			o.Spec.Replicas = &two
			template(&o.Spec.Template)
		}
		kind, _ := cluster.KindOf(o)
		room := buffer(strings.ToLower(kind.Kind), karpenter.CapacityBufferSpec{ScalableRef: &karpenter.ScalableRef{Kind: kind.Kind, APIGroup: "apps", Name: "web"}, Percentage: new(int32(50))})
		objects = append(objects, room)
	}
	return append(append(objects, set, alive), scaled...)
}

// documents returns the snapshot and the batch that a watcher makes from objects, in JSON.
func documents(t *testing.T, objects []cluster.Object) string {
	t.Helper()
	feed := newFakeFeed()
	for _, o := range objects {
		feed.put(o)
	}
	state := collect.NewState(collect.AddDefaultSpread(feed, overZones))
	view := state.View(collect.Inputs{Cluster: event.Cluster{Name: "prod", UID: "uid"}, Now: noon, Settings: planning.Settings{Gates: allGates, PlanDRARequests: true}})
	text, err := json.Marshal([]any{view, state.DisruptionSnapshot(view, repairs)})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func trimmedOf(trims cluster.Trims, objects []cluster.Object) []cluster.Object {
	out := slices.Clone(objects)
	for i := range out {
		if kind, _ := cluster.KindOf(out[i]); trims[kind].Clear != nil {
			out[i] = copyOf(out[i])
			trims[kind].Clear(out[i])
		}
	}
	return out
}

func copyOf(o cluster.Object) cluster.Object { return o.DeepCopyObject().(cluster.Object) }

// fieldChange sets one field below a value of the type that it was made for. It reports whether
// that changed anything.
type fieldChange struct {
	path  string
	apply func(reflect.Value) bool
}

// texts are the values for string fields: a word without a meaning, and some that have a meaning in
// some field.
var texts = []string{"x", "False", "Ready", "Failed"}

// mapKeys are the keys that are set in maps.
var mapKeys = []string{"x", karpenter.DoNotDisruptAnnotationKey, karpenter.DoNotRepairAnnotationKey, karpenter.DisruptionCostAnnotationKey, corev1.PodDeletionCost, corev1.MirrorPodAnnotationKey, "cpu"}

// leaves are the types that are set as a whole.
var leaves = map[reflect.Type][]any{
	reflect.TypeFor[metav1.Time]():        {metav1.NewTime(noon.Add(-time.Minute))},
	reflect.TypeFor[resource.Quantity]():  {resource.MustParse("3")},
	reflect.TypeFor[intstr.IntOrString](): {intstr.FromInt32(3), intstr.FromString("50%")},
	reflect.TypeFor[metav1.FieldsV1]():    {},
}

// deepest is how many fields deep a change goes. Deeper fields are trimmed or kept with the field
// that contains them.
const deepest = 6

// changesOf returns the changes of every field of a type.
func changesOf(of reflect.Type, path string, depth int) []fieldChange {
	if values, ok := leaves[of]; ok {
		return setTo(path, values...)
	}
	if depth > deepest {
		return nil
	}
	switch of.Kind() {
	case reflect.Bool:
		return setTo(path, true)
	case reflect.Int32, reflect.Int64, reflect.Int, reflect.Uint32, reflect.Uint64:
		return setTo(path, 7)
	case reflect.String:
		var out []fieldChange
		for _, text := range texts {
			out = append(out, setTo(path, text)...)
		}
		return out
	case reflect.Pointer:
		return below(changesOf(of.Elem(), path, depth), func(v reflect.Value) reflect.Value {
			if v.IsNil() {
				v.Set(reflect.New(of.Elem()))
			}
			return v.Elem()
		})
	case reflect.Slice:
		return changesOfSlice(of, path, depth)
	case reflect.Map:
		return changesOfMap(of, path, depth)
	case reflect.Struct:
		var out []fieldChange
		for i := range of.NumField() {
			if field := of.Field(i); field.IsExported() && field.Name != "TypeMeta" && !names(of, field.Name) {
				out = append(out, below(changesOf(field.Type, path+"."+field.Name, depth+1), func(v reflect.Value) reflect.Value { return v.Field(i) })...)
			}
		}
		return out
	default:
		return nil
	}
}

// names reports whether a field is part of an object's identity, not of its content.
func names(of reflect.Type, field string) bool {
	return of == reflect.TypeFor[metav1.ObjectMeta]() && (field == "Name" || field == "Namespace" || field == "ManagedFields" || field == "ResourceVersion")
}

// changesOfSlice returns changes of the first element, and of a second one that is added. That one
// is filled, because most elements have no effect while one of their fields is empty.
func changesOfSlice(of reflect.Type, path string, depth int) []fieldChange {
	first := below(changesOf(of.Elem(), path+"[0]", depth+1), func(v reflect.Value) reflect.Value {
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(of, 1, 1))
		}
		return v.Index(0)
	})
	return append(first, fieldChange{path + "[+]", func(v reflect.Value) bool {
		one := reflect.New(of.Elem()).Elem()
		fill(one, depth)
		v.Set(reflect.Append(v, one))
		return true
	}})
}

func changesOfMap(of reflect.Type, path string, depth int) []fieldChange {
	var out []fieldChange
	for _, text := range mapKeys {
		values := changesOf(of.Elem(), fmt.Sprintf("%s[%s]", path, text), depth+1)
		for _, inner := range values[:min(1, len(values))] {
			out = append(out, fieldChange{inner.path, func(v reflect.Value) bool {
				if v.IsNil() {
					v.Set(reflect.MakeMap(of))
				}
				value := reflect.New(of.Elem()).Elem()
				inner.apply(value)
				v.SetMapIndex(reflect.ValueOf(text).Convert(of.Key()), value)
				return true
			}})
		}
	}
	return out
}

// fill sets every field of a value to the first value that the other changes use.
func fill(v reflect.Value, depth int) {
	done := map[string]bool{}
	for _, c := range changesOf(v.Type(), "", depth+1) {
		if !done[c.path] {
			done[c.path] = true
			c.apply(v)
		}
	}
}

// setTo sets a leaf to each of the values.
func setTo(path string, values ...any) []fieldChange {
	var out []fieldChange
	for _, value := range values {
		out = append(out, fieldChange{path, func(v reflect.Value) bool {
			to := reflect.ValueOf(value).Convert(v.Type())
			if reflect.DeepEqual(v.Interface(), to.Interface()) {
				return false
			}
			v.Set(to)
			return true
		}})
	}
	return out
}

// below applies changes to a part of a value.
func below(changes []fieldChange, part func(reflect.Value) reflect.Value) []fieldChange {
	out := make([]fieldChange, len(changes))
	for i, c := range changes {
		out[i] = fieldChange{c.path, func(v reflect.Value) bool { return c.apply(part(v)) }}
	}
	return out
}
