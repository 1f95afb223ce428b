package simulate

import (
	"fmt"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// podsMax bounds the number of pods of one set of manifests.
const podsMax = 100_000

// Demand is the result of expanding manifests.
type Demand struct {
	// Pending are the pods to schedule.
	Pending []*corev1.Pod
	// Bound are the pods that run on a node of the manifests, by node name.
	Bound map[string][]*corev1.Pod
	// Daemons are one pod of each DaemonSet.
	Daemons []*corev1.Pod
	// Claims are the volume claims of the objects, and the claims that StatefulSets would create.
	Claims map[cluster.Key]*corev1.PersistentVolumeClaim
	// Notes list ignored objects and assumptions.
	Notes []string
}

// ExpandWorkloads returns the pods of a set of manifests, as the controllers and the API server of
// a cluster would create them. The same objects give the same pods with the same names. A pod
// counts once, even if the objects contain both its workload and the pod. Notes list information
// that only a cluster has.
func ExpandWorkloads(objects []cluster.Object) (Demand, error) {
	e := expansion{
		Demand:     Demand{Bound: map[string][]*corev1.Pod{}, Claims: claimsOf(objects)},
		priorities: prioritiesOf(objects), owned: ownersOf(objects), taken: map[cluster.Key]bool{},
	}
	for _, object := range objects {
		e.addObject(object)
		if e.count > podsMax {
			return Demand{}, fmt.Errorf("the manifests have more than %d pods", podsMax)
		}
	}
	e.noteMissing()
	return e.Demand, nil
}

// owner identifies the controller of a pod or ReplicaSet.
type owner struct{ namespace, kind, name string }

// ownersOf lists the workloads with children among the objects.
func ownersOf(objects []cluster.Object) map[owner]bool {
	out := map[owner]bool{}
	for _, object := range objects {
		by := metav1.GetControllerOf(object)
		if by == nil {
			continue
		}
		out[owner{namespaceOf(object), by.Kind, by.Name}] = true
		if pod, ok := object.(*corev1.Pod); ok {
			out[grandparentOf(pod, *by)] = true
		}
	}
	return out
}

// cronJobPattern matches the name of a Job of a CronJob: the CronJob's name with the minute of
// the run. Source: Kubernetes: pkg/controller/cronjob/utils.go.
var cronJobPattern = regexp.MustCompile(`^(.+)-\d+$`)

// grandparentOf returns the Deployment or CronJob of a pod's ReplicaSet or Job, derived from
// their names, because ReplicaSets and Jobs may be missing among the objects. It is zero if
// the names do not match. A ReplicaSet is named after its Deployment and the pod-template-hash
// of its pods.
func grandparentOf(pod *corev1.Pod, by metav1.OwnerReference) owner {
	hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	switch name, made := strings.CutSuffix(by.Name, "-"+hash); {
	case by.Kind == "ReplicaSet" && hash != "" && made:
		return owner{namespaceOf(pod), "Deployment", name}
	case by.Kind == "Job" && cronJobPattern.MatchString(by.Name):
		return owner{namespaceOf(pod), "CronJob", cronJobPattern.FindStringSubmatch(by.Name)[1]}
	}
	return owner{}
}

type expansion struct {
	Demand
	priorities priorities
	owned      map[owner]bool
	count      int
	// running are the workloads whose status counts pods that the objects lack.
	running []string
	// taken are the used pod names, from which UIDs are derived.
	taken map[cluster.Key]bool
}

func (e *expansion) addNote(format string, args ...any) {
	e.Notes = append(e.Notes, fmt.Sprintf(format, args...))
}

// KubectlGetAll is the command that prints all objects of a cluster that a plan depends on.
const KubectlGetAll = "kubectl get deployments,replicasets,statefulsets,daemonsets,jobs,cronjobs,pods,nodes,csinodes,nodepools,ec2nodeclasses,pvc,pv,storageclasses,namespaces,priorityclasses -A -o yaml"

// noteMissing notes missing objects that change the cost of a plan: DaemonSets, whose pods run
// on every node, and running pods of workloads.
func (e *expansion) noteMissing() {
	if len(e.Pending) == 0 {
		return
	}
	if len(e.Daemons) == 0 {
		e.addNote("no DaemonSet in the files: nodes are planned without capacity for daemon pods, so real nodes will cost more")
	}
	if len(e.running) > 0 {
		e.addNote("the running pods of %s are not in the files: they are planned as new pods; to get everything that a plan uses: %s", strings.Join(e.running, ", "), KubectlGetAll)
	}
}

// podsRunning returns the number of pods in a workload's status.
func podsRunning(o cluster.Object) int32 {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return o.Status.Replicas
	case *appsv1.ReplicaSet:
		return o.Status.Replicas
	case *appsv1.StatefulSet:
		return o.Status.Replicas
	case *batchv1.Job:
		return o.Status.Active
	}
	return 0
}

func (e *expansion) addObject(object cluster.Object) {
	switch o := object.(type) {
	case *corev1.Pod:
		e.addPod(o)
	case *appsv1.Deployment:
		e.addReplicas(o, "Deployment", "ReplicaSet", o.Spec.Template, o.Spec.Replicas)
	case *appsv1.ReplicaSet:
		if metav1.GetControllerOf(o) == nil || !e.hasPodsOf(o.Namespace, "ReplicaSet", o.Name) {
			e.addReplicas(o, "ReplicaSet", "ReplicaSet", o.Spec.Template, o.Spec.Replicas)
		}
	case *appsv1.StatefulSet:
		e.addStatefulSet(o)
	case *batchv1.Job:
		e.addJob(o)
	case *batchv1.CronJob:
		e.addCronJob(o)
	case *appsv1.DaemonSet:
		e.Daemons = append(e.Daemons, e.newPod(o, "DaemonSet", o.Spec.Template, o.Name))
	}
}

// addPod adds a pod of the manifests.
func (e *expansion) addPod(o *corev1.Pod) {
	pod := o.DeepCopy()
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil:
		return
	case pod.Spec.NodeName != "":
		e.setDefaults(pod)
		e.Bound[pod.Spec.NodeName] = append(e.Bound[pod.Spec.NodeName], pod)
	case len(pod.Spec.SchedulingGates) > 0:
		e.addNote("Pod %s has scheduling gates and is ignored", cluster.KeyOf(pod))
	default:
		if podspec.OwnedBy(pod, "DaemonSet") {
			return
		}
		e.setDefaults(pod)
		e.Pending = append(e.Pending, pod)
	}
}

// addReplicas creates the pods of a workload, unless the objects have them.
func (e *expansion) addReplicas(o cluster.Object, kind, podOwner string, template corev1.PodTemplateSpec, replicas *int32) {
	name := baseName(o)
	for i := range e.countMissing(o, kind, replicas) {
		e.Pending = append(e.Pending, e.newPod(o, podOwner, template, fmt.Sprintf("%s-%d", name, i)))
	}
}

// countMissing returns how many pods of a workload to create: none if the objects have them,
// and none above podsMax, which ExpandWorkloads reports.
func (e *expansion) countMissing(o cluster.Object, kind string, replicas *int32) int {
	if e.hasPodsOf(o.GetNamespace(), kind, o.GetName()) {
		return 0
	}
	wanted := 1
	if replicas != nil {
		wanted = max(int(*replicas), 0)
	}
	if e.count += wanted; e.count > podsMax {
		return 0
	}
	if wanted > 0 && podsRunning(o) > 0 {
		e.running = append(e.running, kind+" "+cluster.KeyOf(o).String())
	}
	return wanted
}

// baseName returns the prefix of the names of a workload's pods.
func baseName(o cluster.Object) string {
	if o.GetName() == "" {
		return strings.TrimSuffix(o.GetGenerateName(), "-")
	}
	return o.GetName()
}

func (e *expansion) hasPodsOf(ns, kind, name string) bool {
	if ns == "" {
		ns = metav1.NamespaceDefault
	}
	return e.owned[owner{ns, kind, name}]
}

// newPod creates a pod from a template, like a controller.
func (e *expansion) newPod(o cluster.Object, kind string, template corev1.PodTemplateSpec, name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = name, namespaceOf(o)
	version := "apps/v1"
	if kind == "Job" {
		version = "batch/v1"
	}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: o.GetName(), Controller: new(true)}}
	e.setDefaults(pod)
	return pod
}

// setDefaults sets the defaults of the API server: a namespace, a unique name, a UID and
// others.
func (e *expansion) setDefaults(pod *corev1.Pod) {
	pod.Namespace = namespaceOf(pod)
	if pod.Name == "" {
		pod.Name = strings.TrimSuffix(pod.GenerateName, "-")
	}
	key := cluster.KeyOf(pod)
	for n := 2; e.taken[key]; n++ {
		key.Name = fmt.Sprintf("%s-%d", pod.Name, n)
	}
	e.taken[key] = true
	pod.Name = key.Name
	if pod.UID == "" {
		pod.UID = types.UID(key.String())
	}
	podspec.SetDefaults(&pod.Spec)
	e.priorities.resolve(&pod.Spec)
}

func namespaceOf(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return metav1.NamespaceDefault
	}
	return o.GetNamespace()
}

// priorities are the values of PriorityClasses by name; "" is the default.
type priorities map[string]int32

func prioritiesOf(objects []cluster.Object) priorities {
	out := priorities{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
	for _, object := range objects {
		if class, ok := object.(*schedulingv1.PriorityClass); ok {
			out[class.Name] = class.Value
			if class.GlobalDefault {
				out[""] = class.Value
			}
		}
	}
	return out
}

func (p priorities) resolve(spec *corev1.PodSpec) {
	value, known := p[spec.PriorityClassName]
	if spec.Priority == nil && known {
		spec.Priority = &value
	}
}
