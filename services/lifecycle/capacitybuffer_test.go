package lifecycle_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// bufferStatus reads the status of the buffer "spare".
func (s *testCluster) bufferStatus() karpenter.CapacityBufferStatus {
	s.t.Helper()
	b, err := cluster.Get[*karpenter.CapacityBuffer](s.t.Context(), s.Server, cluster.CapacityBuffers, cluster.Key{Namespace: "default", Name: "spare"})
	if err != nil {
		s.t.Fatal(err)
	}
	return b.Status
}

// A buffer's status is resolved as soon as it is read, and its provisioning after a plan. Another
// buffer that cannot be read does not delay it.
func TestBuffers(t *testing.T) {
	s := newTestCluster(t)
	s.SeedObjects(
		&karpenter.CapacityBuffer{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "spare"},
			Spec: karpenter.CapacityBufferSpec{
				ScalableRef: &karpenter.ScalableRef{Kind: "Deployment", Name: "web"}, Percentage: new(int32(50)),
			},
		},
		&karpenter.CapacityBuffer{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"},
			Spec:       karpenter.CapacityBufferSpec{ScalableRef: &karpenter.ScalableRef{Kind: "StatefulSet", Name: "db"}, Replicas: new(int32(1))},
		},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}}},
		}},
	)
	s.reconcile()
	if got := s.bufferStatus(); len(got.Conditions) != 0 {
		t.Fatalf("the feature gate is off, but the status is %+v", got)
	}
	s.configureService(func(c *lifecycle.Config) { c.CapacityBuffers = true })
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbGet, Kind: cluster.StatefulSets, As: fault.Throttled})
	s.advance(time.Second)
	if got := s.bufferStatus(); !got.Conditions.IsTrue(karpenter.ConditionTypeReadyForProvisioning) || got.Replicas == nil || *got.Replicas != 2 {
		t.Fatalf("read: %+v", got)
	}
	held := s.startBatch()
	room := planning.Nomination{Namespace: "default", Node: "mine", Pod: planning.PodRef{Name: "capacity-buffer-spare-1", Buffer: "spare"}}
	gone := planning.Nomination{Namespace: "default", Node: "mine", Pod: planning.PodRef{Name: "capacity-buffer-gone-1", Buffer: "gone"}}
	s.handleMessage(s.planMadeMessage(held, planning.Plan{
		Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Nominations: []planning.Nomination{gone, room, room},
	}), "")
	if got := s.bufferStatus(); !got.Conditions.IsTrue(karpenter.ConditionTypeProvisioning) {
		t.Fatalf("planned: %+v", got)
	}
	quiet := s.bufferStatus()
	s.ChangeObject(cluster.Deployments, cluster.Key{Namespace: "default", Name: "web"}, func(o cluster.Object) {
		o.(*appsv1.Deployment).Spec.Replicas = new(int32(10))
	})
	s.advance(9 * time.Second)
	if got := s.bufferStatus(); *got.Replicas != *quiet.Replicas {
		t.Error("the workload was read twice within ten seconds")
	}
	s.advance(2 * time.Second)
	if got := s.bufferStatus(); *got.Replicas != 5 || !got.Conditions.IsTrue(karpenter.ConditionTypeProvisioning) {
		t.Errorf("status after the workload grew: %+v", got)
	}
}

// A status that has not changed is not written.
func TestUnchangedBufferIsNotWritten(t *testing.T) {
	s := newTestCluster(t)
	s.configureService(func(c *lifecycle.Config) { c.CapacityBuffers = true })
	s.SeedObjects(&karpenter.CapacityBuffer{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "spare"},
		Spec:       karpenter.CapacityBufferSpec{ScalableRef: &karpenter.ScalableRef{Kind: "Deployment", Name: "missing"}, Replicas: new(int32(1))},
	})
	s.reconcile()
	if got := s.bufferStatus(); len(got.Conditions) == 0 {
		t.Fatal("the status was not written")
	}
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdateStatus, Kind: cluster.CapacityBuffers, As: fault.Unknown})
	s.advance(25 * time.Second) // A write fails the reconcile.
}
