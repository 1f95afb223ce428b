package sim

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// tenantNamespace is the namespace of the hostile tenant.
const tenantNamespace = "tenant"

// tenantQuota is how many pods of the tenant can run at all, as a ResourceQuota limits them; the others request what
// no node has.
const tenantQuota = 4

var tenantActions = []hostileAction{
	{"unschedulable pods", (*attacker).createUnschedulable}, {"many pods", (*attacker).createManyPods}, {"affinities", (*attacker).createAffinities},
	{"limits of names", (*attacker).createLongNames}, {"deletion costs", (*attacker).createDeletionCosts}, {"do not disrupt", (*attacker).createProtected},
	{"odd terms", (*attacker).createOddTerms}, {"absurd requests", (*attacker).createAbsurdRequests}, {"large pods", (*attacker).createLargePods}, {"delete pods", (*attacker).deletePods},
}

// createPod creates a pod of the tenant. A pod that the API server rejects is counted.
func (a *attacker) createPod(change func(*corev1.Pod)) {
	a.pods++
	grace := int64(0)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: fmt.Sprintf("t-%d", a.pods), Labels: map[string]string{"tenant": "hostile"}}}
	pod.Spec.TerminationGracePeriodSeconds = &grace
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "x", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}}}}
	// The quota is used up by the first pods.
	if a.pods > tenantQuota {
		pod.Spec.NodeSelector = map[string]string{"example.com/no-such-label": "x"}
	}
	change(pod)
	if _, err := a.world.Kube.AsKubernetes(hostileTenant).Create(context.Background(), pod); err != nil {
		a.count("refused by the API server")
	} else {
		a.count("pods")
	}
}

func (a *attacker) createUnschedulable() {
	a.createPod(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"topology.kubernetes.io/zone": "mars"} })
}

// createManyPods creates pods that no NodePool can run: equal ones, or each different.
func (a *attacker) createManyPods() {
	differ := a.random.IntN(2) == 0
	for i := range 20 + a.random.IntN(40) {
		a.createPod(func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"example.com/none": "x"}
			if differ {
				p.Spec.NodeSelector["example.com/none"] = strconv.Itoa(i)
				p.Labels["n"] = strconv.Itoa(i)
			}
		})
	}
}

// createAffinities creates a pod with hundreds of affinity terms, against every other pod.
func (a *attacker) createAffinities() {
	terms := make([]corev1.PodAffinityTerm, 0, 15)
	for i := range cap(terms) {
		terms = append(terms, corev1.PodAffinityTerm{
			TopologyKey: pick(a.random, []string{"kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/x"}), NamespaceSelector: &metav1.LabelSelector{},
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{pick(a.random, []string{"app", "x"}): pick(a.random, []string{"web", "batch", strconv.Itoa(i)})}},
		})
	}
	a.createPod(func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
		if a.random.IntN(2) == 0 {
			p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = terms
		}
		for _, term := range terms {
			p.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(p.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: term})
		}
	})
}

func (a *attacker) createLongNames() {
	a.createPod(func(p *corev1.Pod) {
		p.Name = strings.Repeat("a", 240) + strconv.Itoa(a.pods)
		for i := range 100 {
			p.Labels[strings.Repeat("d", 200)+strconv.Itoa(i)+"/"+strings.Repeat("k", 63)] = strings.Repeat("v", 63)
		}
		p.Spec.PriorityClassName = pick(a.random, []string{"", "system-cluster-critical"})
	})
}

func (a *attacker) createDeletionCosts() {
	a.createPod(func(p *corev1.Pod) {
		p.Annotations = map[string]string{"controller.kubernetes.io/pod-deletion-cost": pick(a.random, []string{"2147483647", "-2147483648", "9e99", "x", ""})}
	})
}

func (a *attacker) createProtected() {
	a.createPod(func(p *corev1.Pod) {
		p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": pick(a.random, []string{"true", "9999h", "-1m", "x"})}
	})
}

// createOddTerms creates a pod with requirements that a planner could misread.
func (a *attacker) createOddTerms() {
	key := pick(a.random, []string{"karpenter.sh/nodepool", "karpenter.sh/initialized", "kubernetes.io/hostname", "example.com/team", "node.kubernetes.io/instance-type", "karpenter.sh/capacity-type", "a/b/c", ""})
	operator := pick(a.random, []corev1.NodeSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "x"})
	value := pick(a.random, []string{"", "-5", "99999999999999999999", "no label, --v=9", "\x00", "../x", "default", strings.Repeat("v", 64)})
	term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: []string{value}}}}
	a.createPod(func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
		if a.random.IntN(2) == 0 {
			p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term, {}}}
		} else {
			p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: term}}
		}
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: pick(a.random, []string{key, "topology.kubernetes.io/zone"}), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{},
		}}
	})
}

func (a *attacker) createAbsurdRequests() {
	a.createPod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(pick(a.random, []string{"9223372036854775807", "9e18", "1000000"})), corev1.ResourceMemory: resource.MustParse(pick(a.random, []string{"8Ei", "9223372036854775807", "1m"})),
			"example.com/gpu": resource.MustParse("1"),
		}
	})
}

// createLargePods creates a pod with a spec near the limit of the API server.
func (a *attacker) createLargePods() {
	a.createPod(func(p *corev1.Pod) {
		for i := range 300 {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprint("example.com/", i), Operator: corev1.TolerationOpEqual, Value: strings.Repeat("v", 60), Effect: corev1.TaintEffectNoSchedule})
		}
	})
}

// deletePods deletes all pods of the tenant.
func (a *attacker) deletePods() {
	for _, pod := range a.listPods() {
		if pod.Namespace == tenantNamespace {
			_ = a.world.Kube.AsKubernetes(hostileTenant).Delete(context.Background(), cluster.Pods, cluster.KeyOf(pod), pod.UID)
		}
	}
}
