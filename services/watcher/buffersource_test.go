package watcher_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// setRequest makes the template's only container request this CPU.
func setRequest(template *corev1.PodTemplateSpec, cpu string) {
	template.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}}}
}

// A change of a buffer's workload is planned within two seconds, and the pods of a buffer that is
// deleted, or whose workload is, are in no further batch and snapshot.
func TestBufferFollowsWorkload(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))}}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2))}}
	replicas := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(2))}}
	for kind, c := range map[cluster.Kind]struct {
		workload cluster.Object
		template func(cluster.Object) *corev1.PodTemplateSpec
		replicas func(cluster.Object) *int32
	}{
		cluster.Deployments:  {deployment, func(o cluster.Object) *corev1.PodTemplateSpec { return &o.(*appsv1.Deployment).Spec.Template }, func(o cluster.Object) *int32 { return o.(*appsv1.Deployment).Spec.Replicas }},
		cluster.StatefulSets: {set, func(o cluster.Object) *corev1.PodTemplateSpec { return &o.(*appsv1.StatefulSet).Spec.Template }, func(o cluster.Object) *int32 { return o.(*appsv1.StatefulSet).Spec.Replicas }},
		cluster.ReplicaSets:  {replicas, func(o cluster.Object) *corev1.PodTemplateSpec { return &o.(*appsv1.ReplicaSet).Spec.Template }, func(o cluster.Object) *int32 { return o.(*appsv1.ReplicaSet).Spec.Replicas }},
	} {
		t.Run(kind.Kind, func(t *testing.T) {
			s := newHarness(t)
			s.svc.Settings.Gates.CapacityBuffer = true
			setRequest(c.template(c.workload), "1")
			buffer := &karpenter.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "spare", UID: "spare"}}
			buffer.Spec.ScalableRef, buffer.Spec.Percentage = &karpenter.ScalableRef{Kind: kind.Kind, Name: "web"}, new(int32(50))
			s.SeedObjects(c.workload, buffer)
			expect := func(when string, pods int, cpu string) {
				t.Helper()
				s.advance(2 * time.Second)
				_, batch := s.takeBatch()
				if len(batch.Pending) != 1 || len(batch.Pending[0].Pods) != pods || batch.Pending[0].Spec.Requests.Cpu().String() != cpu {
					t.Errorf("%s the batch has %+v, want %d pods of %s CPU", when, batch.Pending, pods, cpu)
				}
				s.applyPlan(outbox.Done)
				s.advance(time.Second)
			}
			expect("at first", 1, "1")
			change := func(how func(cluster.Object)) {
				s.ChangeObject(kind, cluster.Key{Namespace: "default", Name: "web"}, how)
			}
			change(func(o cluster.Object) { *c.replicas(o) = 6 })
			expect("after more replicas", 3, "1")
			change(func(o cluster.Object) { setRequest(c.template(o), "2") })
			expect("after a change of the pod template", 3, "2")
		})
	}
}

// The pods of a buffer that is deleted, or whose workload is, are in no further snapshot.
func TestPodsOfDeletedBuffers(t *testing.T) {
	for name, kind := range map[string]cluster.Kind{"spare": cluster.CapacityBuffers, "web": cluster.Deployments} {
		t.Run(kind.Kind, func(t *testing.T) {
			s := newHarness(t)
			s.svc.Settings.Gates.CapacityBuffer = true
			web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
			setRequest(&web.Spec.Template, "1")
			buffer := &karpenter.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "spare", UID: "spare"}}
			buffer.Spec.ScalableRef, buffer.Spec.Replicas = &karpenter.ScalableRef{Kind: "Deployment", Name: "web"}, new(int32(2))
			s.SeedObjects(web, buffer)
			s.advance(2 * time.Second)
			if _, batch := s.takeBatch(); len(planning.NewBufferPods(batch.Snapshot.Buffers)) != 1 {
				t.Fatalf("got buffers %+v", batch.Snapshot.Buffers)
			}
			s.applyPlan(outbox.Done)
			if err := s.Delete(t.Context(), kind, cluster.Key{Namespace: "default", Name: name}, ""); err != nil {
				t.Fatal(err)
			}
			s.SeedObjects(unschedulable("default", "p"))
			s.advance(2 * time.Second)
			_, batch := s.takeBatch()
			if len(batch.Pending) != 1 || batch.Pending[0].Pods[0].Name != "p" || len(planning.NewBufferPods(batch.Snapshot.Buffers)) != 0 {
				t.Errorf("after the deletion the batch has %+v", batch.Pending)
			}
		})
	}
}
