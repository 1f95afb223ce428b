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
	// Claims are the volume claims of the objects, and those that StatefulSets
	// would make.
	Claims map[cluster.Key]*corev1.PersistentVolumeClaim
	// Notes say what was left out or supposed.
	Notes []string
}

// ExpandWorkloads returns the pods that a set of manifests asks for, as the controllers
// and the API server of a cluster would create them. The same objects give the same pods
// under the same names. A pod counts once, also when the objects contain both its workload
// and the pod. Notes list what only a cluster could answer.
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

// owner names a workload; pods and ReplicaSets say by whom they are controlled.
type owner struct{ namespace, kind, name string }

// ownersOf lists the workloads whose children are among the objects themselves.
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

// jobOfCron is the name of a Job that a CronJob made: its own with the minute of the run.
// Source: Kubernetes: pkg/controller/cronjob/utils.go.
var jobOfCron = regexp.MustCompile(`^(.+)-\d+$`)

// grandparentOf is the Deployment or CronJob that a pod's ReplicaSet or Job belongs to, told by
// their names, because ReplicaSets and Jobs may be missing from the objects. It is zero where the
// names do not tell. A ReplicaSet is named after its Deployment and its pods' pod-template-hash.
func grandparentOf(pod *corev1.Pod, by metav1.OwnerReference) owner {
	hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	switch name, made := strings.CutSuffix(by.Name, "-"+hash); {
	case by.Kind == "ReplicaSet" && hash != "" && made:
		return owner{namespaceOf(pod), "Deployment", name}
	case by.Kind == "Job" && jobOfCron.MatchString(by.Name):
		return owner{namespaceOf(pod), "CronJob", jobOfCron.FindStringSubmatch(by.Name)[1]}
	}
	return owner{}
}

type expansion struct {
	Demand
	priorities priorities
	owned      map[owner]bool
	count      int
	// running are the workloads whose status counts pods that the objects do not have.
	running []string
	// taken are the names of pods, which their identities are made of.
	taken map[cluster.Key]bool
}

func (e *expansion) note(format string, args ...any) {
	e.Notes = append(e.Notes, fmt.Sprintf(format, args...))
}

// KubectlGetAll is the command that prints all that a plan depends on, from a cluster.
const KubectlGetAll = "kubectl get deployments,replicasets,statefulsets,daemonsets,jobs,cronjobs,pods,nodes,csinodes,nodepools,ec2nodeclasses,pvc,pv,storageclasses,namespaces,priorityclasses -A -o yaml"

// noteMissing says what is not among the objects and changes what a plan costs: DaemonSets, whose
// pods every node has, and the pods of workloads that a cluster runs already.
func (e *expansion) noteMissing() {
	if len(e.Waiting) == 0 {
		return
	}
	if len(e.Daemons) == 0 {
		e.note("no DaemonSet in the files: nodes are planned without capacity for daemon pods, so real nodes will cost more")
	}
	if len(e.running) > 0 {
		e.note("the running pods of %s are not in the files: they are planned as new pods; to get everything that a plan uses: %s", strings.Join(e.running, ", "), KubectlGetAll)
	}
}

// podsRunning is how many pods a workload's status counts.
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

// addPod takes over a pod that is in the manifests as such.
func (e *expansion) addPod(o *corev1.Pod) {
	pod := o.DeepCopy()
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil:
		return
	case pod.Spec.NodeName != "":
		e.setDefaults(pod)
		e.Bound[pod.Spec.NodeName] = append(e.Bound[pod.Spec.NodeName], pod)
	case len(pod.Spec.SchedulingGates) > 0:
		e.note("Pod %s has scheduling gates and is ignored", cluster.KeyOf(pod))
	default:
		if by := metav1.GetControllerOf(pod); by != nil && by.Kind == "DaemonSet" {
			return
		}
		e.setDefaults(pod)
		e.Waiting = append(e.Waiting, pod)
	}
}

// addReplicas makes the pods of a workload, unless they are among the objects.
func (e *expansion) addReplicas(o cluster.Object, kind, podOwner string, template corev1.PodTemplateSpec, replicas *int32) {
	name := baseName(o)
	for i := range e.countMissing(o, kind, replicas) {
		e.Waiting = append(e.Waiting, e.newPod(o, podOwner, template, fmt.Sprintf("%s-%d", name, i)))
	}
}

// countMissing is how many pods of a workload have to be made: none when they are
// among the objects, and none when there are too many, which Of reports.
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

// baseName is what the pods of a workload are named after.
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

// newPod is a pod as a controller makes it from a template.
func (e *expansion) newPod(o cluster.Object, kind string, template corev1.PodTemplateSpec, name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = name, namespaceOf(o)
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: o.GetName(), Controller: new(true)}}
	e.setDefaults(pod)
	return pod
}

// setDefaults gives a pod what the API server would: a namespace, a name that no other
// pod has, an identity, and defaults.
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

// priorities are the values of priority classes by name; "" is the default's.
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
