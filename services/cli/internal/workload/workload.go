// Package workload finds out which pods a set of manifests asks for, as the
// controllers and the API server of a cluster would.
//
// The invariants: the same objects give the same pods under the same names; no
// pod is counted twice when the objects hold both a workload and its pods; and
// what cannot be told offline is said as a note, never guessed in silence.
package workload

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/podspec"
)

// podsMax bounds how many pods one set of manifests may come to.
const podsMax = 100_000

// Demand is what the manifests come to.
type Demand struct {
	// Waiting need a place.
	Waiting []*corev1.Pod
	// Bound run on a node of the manifests already, by its name.
	Bound map[string][]*corev1.Pod
	// Daemons are one pod of each DaemonSet.
	Daemons []*corev1.Pod
	// Notes say what was left out or supposed.
	Notes []string
}

// Of works out the demand of objects.
func Of(objects []cluster.Object) (Demand, error) {
	e := expansion{Demand: Demand{Bound: map[string][]*corev1.Pod{}}, priorities: prioritiesOf(objects), owned: ownersOf(objects)}
	for _, object := range objects {
		e.add(object)
		if e.count > podsMax {
			return Demand{}, fmt.Errorf("the manifests ask for more than %d pods", podsMax)
		}
	}
	return e.Demand, nil
}

// owner names a workload; pods and ReplicaSets say by whom they are controlled.
type owner struct{ namespace, kind, name string }

// ownersOf lists the workloads whose children are among the objects themselves.
func ownersOf(objects []cluster.Object) map[owner]bool {
	out := map[owner]bool{}
	for _, object := range objects {
		if by := metav1.GetControllerOf(object); by != nil {
			out[owner{namespace(object), by.Kind, by.Name}] = true
		}
	}
	return out
}

type expansion struct {
	Demand
	priorities priorities
	owned      map[owner]bool
	count      int
}

func (e *expansion) note(format string, args ...any) {
	e.Notes = append(e.Notes, fmt.Sprintf(format, args...))
}

func (e *expansion) add(object cluster.Object) {
	switch o := object.(type) {
	case *corev1.Pod:
		e.pod(o)
	case *appsv1.Deployment:
		e.copies(o, "Deployment", "ReplicaSet", o.Spec.Template, o.Spec.Replicas)
	case *appsv1.ReplicaSet:
		if metav1.GetControllerOf(o) == nil || !e.hasPodsOf(o.Namespace, "ReplicaSet", o.Name) {
			e.copies(o, "ReplicaSet", "ReplicaSet", o.Spec.Template, o.Spec.Replicas)
		}
	case *appsv1.StatefulSet:
		e.copies(o, "StatefulSet", "StatefulSet", o.Spec.Template, o.Spec.Replicas)
		if len(o.Spec.VolumeClaimTemplates) > 0 {
			e.note("StatefulSet %s: its volumes are not looked at; they may tie pods to a zone", cluster.KeyOf(o))
		}
	case *batchv1.Job:
		e.copies(o, "Job", "Job", o.Spec.Template, atOnce(o.Spec))
	case *batchv1.CronJob:
		e.note("CronJob %s has no pods until it runs, and is left out", cluster.KeyOf(o))
	case *appsv1.DaemonSet:
		e.Daemons = append(e.Daemons, e.made(o, "DaemonSet", o.Spec.Template, o.Name))
	}
}

// pod takes over a pod that is in the manifests as such.
func (e *expansion) pod(o *corev1.Pod) {
	pod := o.DeepCopy()
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil:
		return
	case pod.Spec.NodeName != "":
		e.settle(pod)
		e.Bound[pod.Spec.NodeName] = append(e.Bound[pod.Spec.NodeName], pod)
	case len(pod.Spec.SchedulingGates) > 0:
		e.note("Pod %s waits behind scheduling gates, and is left out", cluster.KeyOf(pod))
	default:
		if by := metav1.GetControllerOf(pod); by != nil && by.Kind == "DaemonSet" {
			return
		}
		e.wait(pod)
	}
}

func (e *expansion) wait(pod *corev1.Pod) {
	e.settle(pod)
	if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil }) {
		e.noteOnce("volume claims of pods are not looked at; they may tie pods to a zone")
	}
	e.Waiting = append(e.Waiting, pod)
}

func (e *expansion) noteOnce(text string) {
	if !slices.Contains(e.Notes, text) {
		e.Notes = append(e.Notes, text)
	}
}

// copies makes the pods of a workload, unless they are among the objects.
func (e *expansion) copies(o cluster.Object, kind, podOwner string, template corev1.PodTemplateSpec, replicas *int32) {
	if e.hasPodsOf(namespace(o), kind, o.GetName()) {
		return
	}
	wanted := 1
	if replicas != nil {
		wanted = int(*replicas)
	}
	if e.count += wanted; e.count > podsMax {
		return // Of reports it.
	}
	name := o.GetName()
	if name == "" {
		name = strings.TrimSuffix(o.GetGenerateName(), "-")
	}
	for i := range wanted {
		e.wait(e.made(o, podOwner, template, fmt.Sprintf("%s-%d", name, i)))
	}
}

func (e *expansion) hasPodsOf(ns, kind, name string) bool {
	if ns == "" {
		ns = metav1.NamespaceDefault
	}
	return e.owned[owner{ns, kind, name}]
}

// made is a pod as a controller makes it from a template.
func (e *expansion) made(o cluster.Object, kind string, template corev1.PodTemplateSpec, name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = name, namespace(o)
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: o.GetName(), Controller: new(true)}}
	e.settle(pod)
	return pod
}

// settle gives a pod what the API server would: a namespace, an identity, and
// defaults.
func (e *expansion) settle(pod *corev1.Pod) {
	pod.Namespace = namespace(pod)
	if pod.Name == "" {
		pod.Name = strings.TrimSuffix(pod.GenerateName, "-")
	}
	if pod.UID == "" {
		pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
	}
	podspec.SetDefaults(&pod.Spec)
	e.priorities.resolve(&pod.Spec)
}

func namespace(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return metav1.NamespaceDefault
	}
	return o.GetNamespace()
}

// atOnce is how many pods of a Job run at the same time.
func atOnce(spec batchv1.JobSpec) *int32 {
	parallel := int32(1)
	if spec.Parallelism != nil {
		parallel = *spec.Parallelism
	}
	if spec.Completions != nil {
		parallel = min(parallel, *spec.Completions)
	}
	if spec.Suspend != nil && *spec.Suspend {
		parallel = 0
	}
	return &parallel
}
