package lifecycle

import (
	"context"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// TestDrains drains nodes whose pods, budgets and volumes delay the drain, all at the
// same time.
func TestDrains(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane")
	}
	t.Parallel()
	s := newSite(t)
	t.Run("concurrently", func(t *testing.T) {
		for name, story := range map[string]func(*site){
			"a budget that is relaxed later":    budgeted,
			"two budgets":                       twoBudgets,
			"a finalizer":                       finalized,
			"the termination grace period ends": overdue,
			"volumes":                           attachedVolumes,
			"a node without a claim":            nodeWithoutClaim,
			"kubectl delete node":               nodeDeleted,
			"other clients write the objects":   concurrentWrites,
			"a pod replaced under its name":     replaced,

			"four eviction groups":               ordered,
			"pods that are not evicted":          podsNotEvicted,
			"a pod that never ends":              stuck,
			"pods that are not ready":            unready,
			"a pod that is created late":         late,
			"a pod with a long grace period":     overlong,
			"a volume that stays attached":       attachedStill,
			"the instance is already terminated": vanished,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				story(s.in(t))
			})
		}
	})
}

func budgeted(s *site) {
	m := s.machine("budgeted")
	m.pod("web")
	m.budget("web", "web", 1)
	m.deleteClaim()
	m.waitForEvent(30*time.Second, karpenter.ReasonFailedDraining, "default/web", "ConfigMap web", "PodDisruptionBudget web", "1 pods must be healthy, and 1 of 1 are")
	m.waitUntil(5*time.Second, "reported on the claim", func() bool { return m.condition(karpenter.ConditionTypeDrained).Reason == "Draining" })
	if gone, _ := m.podDeletion("web"); gone || m.isTerminationRequested() {
		s.Error("the pod was evicted against its budget, or the instance terminated")
	}
	m.patchBudget("web", map[string]any{"spec": map[string]any{"minAvailable": 0}})
	took := m.waitUntil(15*time.Second, "evicted", func() bool { gone, _ := m.podDeletion("web"); return gone })
	s.Logf("evicted %s after its budget was relaxed", took.Round(time.Millisecond))
	m.endPod("web")
	m.requireTermination()
}

func twoBudgets(s *site) {
	m := s.machine("two")
	m.pod("api")
	m.budget("one", "api", 0)
	m.budget("other", "api", 0)
	m.deleteClaim()
	m.waitForEvent(30*time.Second, karpenter.ReasonFailedDraining, "default/api", "2 PodDisruptionBudgets, one and other")
	s.check(s.kube.PolicyV1().PodDisruptionBudgets("default").Delete(s.Context(), "other", metav1.DeleteOptions{}))
	m.waitUntil(15*time.Second, "evicted", func() bool { gone, _ := m.podDeletion("api"); return gone })
	m.endPod("api")
	m.requireTermination()
}

// The drain waits for a completed pod with a finalizer, and names it.
func finalized(s *site) {
	m := s.machine("finalized")
	second := int64(1)
	m.pod("held", func(p *corev1.Pod) {
		p.Finalizers, p.Spec.TerminationGracePeriodSeconds = []string{"example.com/slow"}, &second
	})
	m.deleteClaim()
	m.waitForEvent(30*time.Second, karpenter.ReasonFailedDraining, "default/held", "example.com/slow")
	if m.isTerminationRequested() {
		s.Error("the termination was requested before the pod had ended")
	}
	pod, err := s.kube.CoreV1().Pods("default").Get(s.Context(), "held", metav1.GetOptions{})
	s.check(err)
	pod.Finalizers = nil
	_, err = s.kube.CoreV1().Pods("default").Update(s.Context(), pod, metav1.UpdateOptions{})
	s.check(err)
	m.endPod("held")
	m.requireTermination()
}

// A budget and an annotation prevent the eviction, and the pod is deleted early enough
// for its grace period to end before the node's termination time.
func overdue(s *site) {
	m := s.machine("overdue", func(c *karpenter.NodeClaim) {
		c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: 20 * time.Second}
	})
	grace := int64(8)
	m.pod("kept", func(p *corev1.Pod) {
		p.Spec.TerminationGracePeriodSeconds = &grace
		p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}
	})
	m.budget("kept", "kept", 1)
	m.deleteClaim()
	var had int64
	m.waitUntil(30*time.Second, "deleted", func() bool {
		gone, seconds := m.podDeletion("kept")
		had = seconds
		return gone
	})
	c := m.claim()
	over := c.DeletionTimestamp.Add(20 * time.Second)
	if left := time.Until(over); had < 7 || had > 8 || left > 9*time.Second || left < 5*time.Second {
		s.Errorf("the pod has %d s of 8 s, and the node's deadline is in %s", had, left)
	}
	if at := c.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey]; at != over.UTC().Format(time.RFC3339) {
		s.Errorf("got deadline %s, want %s", at, over.UTC().Format(time.RFC3339))
	}
	m.waitForEvent(10*time.Second, karpenter.ReasonGracePeriodExpiring, "All pods will be deleted by")
	m.endPod("kept")
	m.requireTermination()
}

// The drain waits for the volume of an evicted pod, and not for that of a pod that stays.
func attachedVolumes(s *site) {
	m := s.machine("volumes")
	m.pod("stays", func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		v := corev1.Volume{Name: "data"}
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "stays"}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stays"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse("1Gi")}
	claim.Spec.VolumeName = "pv-stays"
	_, err := s.admin.Create(s.Context(), claim)
	s.check(err)
	for _, pv := range []string{"pv-stays", "pv-goes"} {
		a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "attach-" + pv}}
		a.Spec.Attacher, a.Spec.NodeName, a.Spec.Source.PersistentVolumeName = "ebs.csi.aws.com", m.name, &pv
		_, err := s.admin.Create(s.Context(), a)
		s.check(err)
	}
	m.deleteClaim()
	m.waitForEvent(30*time.Second, karpenter.ReasonAwaitingVolumeDetachment, "(attach-pv-goes)")
	if c := m.condition(karpenter.ConditionTypeVolumesDetached); c.Status != "Unknown" || c.Reason != "AwaitingVolumeDetachment" || m.isTerminationRequested() {
		s.Errorf("the volume is not waited for: %+v", c)
	}
	s.check(s.admin.Delete(s.Context(), cluster.VolumeAttachments, cluster.Key{Name: "attach-pv-goes"}, ""))
	m.waitUntil(20*time.Second, "detached", func() bool { return m.condition(karpenter.ConditionTypeVolumesDetached).Status == "True" })
	m.requireTermination()
}

// The claim is removed by hand, and Kubernetes's garbage collector deletes the Node that
// it owned.
func nodeWithoutClaim(s *site) {
	m := s.machine("orphan")
	m.pod("orphan")
	s.check(s.admin.Delete(s.Context(), cluster.NodeClaims, cluster.Key{Name: m.name}, ""))
	m.swap(cluster.NodeClaims, func(o cluster.Object) cluster.Object { o.SetFinalizers(nil); return o }, s.admin.Update)
	m.waitUntil(60*time.Second, "evicted from", func() bool { gone, _ := m.podDeletion("orphan"); return gone })
	m.endPod("orphan")
	m.waitUntil(30*time.Second, "released", func() bool { return m.node() == nil })
}

func nodeDeleted(s *site) {
	m := s.machine("by-hand")
	m.pod("moved")
	s.check(s.admin.Delete(s.Context(), cluster.Nodes, cluster.Key{Name: m.name}, ""))
	m.waitForTaint()
	m.waitUntil(20*time.Second, "evicted from", func() bool { gone, _ := m.podDeletion("moved"); return gone })
	m.endPod("moved")
	m.requireTermination()
}

// Another client writes the node and the claim all the time.
func concurrentWrites(s *site) {
	m := s.machine("contended")
	ctx, stop := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			for _, kind := range []cluster.Kind{cluster.Nodes, cluster.NodeClaims} {
				if o, err := s.admin.Get(ctx, kind, cluster.Key{Name: m.name}); err == nil {
					o.SetLabels(with(o.GetLabels(), "beat", strconv.Itoa(i)))
					_, _ = s.admin.Update(ctx, o)
				}
			}
			time.Sleep(30 * time.Millisecond)
		}
	}()
	m.deleteClaim()
	m.waitUntil(30*time.Second, "requested to terminate its instance", func() bool { return m.isTerminationRequested() })
	stop()
	<-done
	m.requireTermination()
}

func with(labels map[string]string, key, value string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	return labels
}

// An evicted pod is recreated with the same name, as a StatefulSet does. It is a
// different pod: an eviction with the first pod's UID fails, and it stays, because it
// tolerates the taint.
func replaced(s *site) {
	m := s.machine("replaced")
	first := m.pod("db-0")
	m.deleteClaim()
	m.waitUntil(20*time.Second, "evicted from", func() bool { gone, _ := m.podDeletion("db-0"); return gone })
	m.endPod("db-0")
	s.check(s.kube.CoreV1().ConfigMaps("default").Delete(s.Context(), "db-0", metav1.DeleteOptions{}))
	second := m.pod("db-0", func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} })
	if err := s.admin.Evict(s.Context(), cluster.KeyOf(first), first.UID); err == nil {
		s.Error("the first pod's eviction evicted its successor")
	}
	m.requireTermination()
	if gone, _ := m.podDeletion("db-0"); gone || second.UID == first.UID {
		s.Error("the successor was evicted")
	}
}
