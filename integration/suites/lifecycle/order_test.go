package lifecycle

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// ordered: each group of pods is evicted after the previous group has ended.
func ordered(s *site) {
	m := s.machine("ordered")
	critical := func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }
	groups := []string{"plain", "daemon", "critical", "critical-daemon"}
	m.pod("plain")
	m.daemon("daemon")
	m.pod("critical", critical)
	m.daemon("critical-daemon", critical)
	m.deleteClaim()
	for i, name := range groups {
		m.waitUntil(20*time.Second, "evicted: "+name, func() bool { gone, _ := m.podDeletion(name); return gone })
		for _, later := range groups[i+1:] {
			if gone, _ := m.podDeletion(later); gone || m.isTerminationRequested() {
				s.Errorf("%s was evicted, or the termination requested, while %s was running", later, name)
			}
		}
		m.endPod(name)
	}
	m.requireTermination()
}

// daemon runs a DaemonSet's pod on the machine. The pod is created first, and the
// DaemonSet adopts it, because no kubelet would run another.
func (m machine) daemon(name string, changes ...func(*corev1.Pod)) {
	m.Helper()
	pod := m.pod(name, append(changes, func(p *corev1.Pod) { p.OwnerReferences = nil })...)
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: pod.Labels}
	set.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	set.Spec.Template.Labels = pod.Labels
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	here := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{m.name}}
	set.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{here}}},
	}}}
	_, err := m.kube.AppsV1().DaemonSets("default").Create(m.Context(), set, metav1.CreateOptions{})
	m.check(err)
	m.waitUntil(20*time.Second, "adopted by its DaemonSet: "+name, func() bool {
		pod, err := m.kube.CoreV1().Pods("default").Get(m.Context(), name, metav1.GetOptions{})
		m.check(err)
		owner := metav1.GetControllerOf(pod)
		return owner != nil && owner.Kind == "DaemonSet"
	})
}

// podsNotEvicted: a drain neither evicts nor waits for pods that have completed, that are
// static, or that tolerate the taint.
func podsNotEvicted(s *site) {
	m := s.machine("passed-by")
	ended := m.pod("ended")
	ended.Status.Phase = corev1.PodSucceeded
	_, err := m.kube.CoreV1().Pods("default").UpdateStatus(m.Context(), ended, metav1.UpdateOptions{})
	s.check(err)
	m.pod("static", func(p *corev1.Pod) {
		p.Annotations, p.OwnerReferences = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}, nil
	})
	m.pod("tolerant", func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: karpenter.DisruptedTaintKey, Operator: corev1.TolerationOpExists}}
	})
	m.pod("other")
	m.deleteClaim()
	m.waitUntil(20*time.Second, "evicted: other", func() bool { gone, _ := m.podDeletion("other"); return gone })
	m.endPod("other")
	m.waitUntil(30*time.Second, "requested to terminate its instance", func() bool { return m.isTerminationRequested() })
	for _, name := range []string{"ended", "static", "tolerant"} {
		if gone, _ := m.podDeletion(name); gone {
			s.Errorf("%s was removed", name)
		}
	}
	m.requireTermination()
}

// stuck: the drain waits for a terminating pod at most a minute longer than its grace
// period.
func stuck(s *site) {
	m := s.machine("stuck")
	second := int64(1)
	m.pod("forgotten", func(p *corev1.Pod) {
		p.Finalizers, p.Spec.TerminationGracePeriodSeconds = []string{"example.com/never"}, &second
	})
	m.deleteClaim()
	var since time.Time
	m.waitUntil(20*time.Second, "evicted", func() bool { gone, _ := m.podDeletion("forgotten"); since = time.Now(); return gone })
	m.waitUntil(100*time.Second, "requested to terminate its instance", func() bool { return m.isTerminationRequested() })
	if waited := time.Since(since); waited < time.Minute {
		s.Errorf("waited only %s for a stuck pod, want at least a minute", waited.Round(time.Second))
	}
	m.reportTerminated()
	m.waitUntil(20*time.Second, "removed, node and claim", func() bool { return m.node() == nil && m.claim() == nil })
}

// unready: an unhealthy pod is evicted despite a budget that permits it for such pods,
// and not despite others.
func unready(s *site) {
	m := s.machine("unready")
	for name, policy := range map[string]policyv1.UnhealthyPodEvictionPolicyType{"sick": policyv1.AlwaysAllow, "ill": policyv1.IfHealthyBudget} {
		pod := m.pod(name)
		pod.Status.Conditions[0].Status = corev1.ConditionFalse
		_, err := m.kube.CoreV1().Pods("default").UpdateStatus(m.Context(), pod, metav1.UpdateOptions{})
		s.check(err)
		one := intstr.FromInt(1)
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}}
		b.Spec = policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}, UnhealthyPodEvictionPolicy: &policy,
		}
		budgets := m.kube.PolicyV1().PodDisruptionBudgets("default")
		_, err = budgets.Create(m.Context(), b, metav1.CreateOptions{})
		s.check(err)
		m.waitUntil(20*time.Second, "counted in a budget", func() bool {
			b, err := budgets.Get(m.Context(), name, metav1.GetOptions{})
			return err == nil && b.Status.ObservedGeneration == b.Generation && b.Status.ExpectedPods == 1 && b.Status.CurrentHealthy == 0
		})
	}
	m.deleteClaim()
	m.waitUntil(20*time.Second, "evicted against its budget", func() bool { gone, _ := m.podDeletion("sick"); return gone })
	m.endPod("sick")
	m.waitForEvent(30*time.Second, karpenter.ReasonFailedDraining, "default/ill", "PodDisruptionBudget ill", "1 pods must be healthy, and 0 of 1 are")
	if gone, _ := m.podDeletion("ill"); gone || m.isTerminationRequested() {
		s.Error("a pod was evicted against a budget with the policy IfHealthyBudget, or the instance terminated")
	}
	m.patchBudget("ill", map[string]any{"spec": map[string]any{"unhealthyPodEvictionPolicy": policyv1.AlwaysAllow}})
	m.waitUntil(20*time.Second, "evicted once the policy allows it", func() bool { gone, _ := m.podDeletion("ill"); return gone })
	m.endPod("ill")
	m.requireTermination()
}

// late: a node drains for at least five seconds, so that a pod that was bound while the
// taint was written is evicted as well.
func late(s *site) {
	m := s.machine("late")
	m.deleteClaim()
	m.pod("bound")
	m.waitUntil(20*time.Second, "evicted", func() bool { gone, _ := m.podDeletion("bound"); return gone })
	if m.isTerminationRequested() {
		s.Error("the termination was requested before the cache had the pod")
	}
	m.endPod("bound")
	m.requireTermination()

	m = s.machine("empty")
	m.deleteClaim()
	var began metav1.Time
	m.waitUntil(20*time.Second, "draining", func() bool {
		c := m.condition(karpenter.ConditionTypeDrained)
		began = c.LastTransitionTime
		return c.Status == metav1.ConditionUnknown
	})
	m.waitUntil(30*time.Second, "requested to terminate its instance", func() bool { return m.isTerminationRequested() })
	if took := time.Since(began.Time); took < 5*time.Second {
		s.Errorf("an empty node was drained for only %s", took)
	}
	m.requireTermination()
}

// overlong: a pod whose grace period exceeds the node's remaining time gets the remaining
// time. If it does not end then, it delays the node by at most a minute.
func overlong(s *site) {
	m := s.machine("overlong", func(c *karpenter.NodeClaim) {
		c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: 12 * time.Second}
	})
	grace := int64(600)
	m.pod("slow", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &grace })
	m.deleteClaim()
	over := m.claim().DeletionTimestamp.Add(12 * time.Second)
	var had int64
	m.waitUntil(20*time.Second, "deleted", func() bool {
		gone, seconds := m.podDeletion("slow")
		had = seconds
		return gone
	})
	if had < 1 || had > 12 {
		s.Errorf("the pod has %d s to end, the node's deadline was in 12 s", had)
	}
	m.waitUntil(100*time.Second, "requested to terminate its instance", func() bool { return m.isTerminationRequested() })
	if after := time.Since(over); after < 0 || after > 75*time.Second {
		s.Errorf("the termination was requested %s after the deadline", after.Round(time.Second))
	}
	m.reportTerminated()
	m.waitUntil(20*time.Second, "removed, node and claim", func() bool { return m.node() == nil && m.claim() == nil })
}

// attachedStill: the drain waits for volumes only until the node's termination time.
func attachedStill(s *site) {
	m := s.machine("attached-still", func(c *karpenter.NodeClaim) {
		c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: 20 * time.Second}
	})
	pv := "pv-still"
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "attach-" + pv}}
	a.Spec.Attacher, a.Spec.NodeName, a.Spec.Source.PersistentVolumeName = "ebs.csi.aws.com", m.name, &pv
	_, err := s.admin.Create(s.Context(), a)
	s.check(err)
	m.deleteClaim()
	over := m.claim().DeletionTimestamp.Add(20 * time.Second)
	m.waitUntil(60*time.Second, "requested to terminate its instance", func() bool { return m.isTerminationRequested() })
	if time.Now().Before(over) {
		s.Error("the termination was requested before the deadline, although a volume is attached")
	}
	if c := m.condition(karpenter.ConditionTypeVolumesDetached); c.Status != "False" || c.Reason != "TerminationGracePeriodElapsed" {
		s.Errorf("got VolumesDetached %s %s", c.Status, c.Reason)
	}
	m.requireTermination()
}

// vanished: once EC2 shows the instance as terminated, no budget and no pod delays the
// deletion of node and claim. Until then both show that they are being deleted.
func vanished(s *site) {
	m := s.machine("vanished")
	m.pod("last")
	m.budget("last", "last", 1)
	m.deleteClaim()
	m.waitForEvent(30*time.Second, karpenter.ReasonFailedDraining, "default/last")
	n := m.node()
	if n.DeletionTimestamp == nil || n.Labels["node.kubernetes.io/exclude-from-external-load-balancers"] != "karpenter" ||
		!karpenter.HasTaint(n.Spec.Taints, karpenter.DisruptedTaint()) || len(n.Finalizers) == 0 {
		s.Errorf("a draining node has %+v", n.ObjectMeta)
	}
	m.reportTerminated()
	m.waitUntil(15*time.Second, "removed, node and claim", func() bool { return m.node() == nil && m.claim() == nil })
	// The message that the instance is terminated may have been wrong.
	if !m.isTerminationRequested() {
		s.Error("removed the claim without a request to terminate its instance")
	}
}
