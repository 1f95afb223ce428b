package lifecycle_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// getPool returns the default pool, or nil.
func (s *testCluster) getPool() *karpenter.NodePool {
	s.t.Helper()
	pool, err := cluster.Get[*karpenter.NodePool](s.t.Context(), s.Server, cluster.NodePools, cluster.Key{Name: "default"})
	if fault.Is(err, fault.Missing) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return pool
}

func (s *testCluster) poolCondition(kind string) metav1.Condition {
	s.t.Helper()
	c, _ := s.getPool().Status.Conditions.Get(kind)
	return c
}

func (s *testCluster) updatePool(how func(*karpenter.NodePool)) {
	s.t.Helper()
	s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) { how(o.(*karpenter.NodePool)) })
}

func TestNodePoolStatus(t *testing.T) {
	s := newTestCluster(t)
	s.updatePool(func(p *karpenter.NodePool) {
		p.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Name: "default"}
	})
	s.runNode()
	s.ChangeObject(cluster.Nodes, cluster.Key{Name: "node-1"}, func(o cluster.Object) { o.(*corev1.Node).Status.Capacity = cpu("3") })
	s.reconcile()
	got := s.getPool()
	if got.Annotations[karpenter.NodePoolHashVersionAnnotationKey] != karpenter.NodePoolHashVersion || *got.Status.Nodes != 1 || got.Status.Resources.Cpu().Value() != 3 {
		t.Errorf("got annotations %v, status %+v", got.Annotations, got.Status)
	}
	if s.poolCondition("NodeClassReady").Reason != "NodeClassNotFound" || got.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
		t.Errorf("without its node class got %+v", got.Status.Conditions)
	}
	class := s.addNodeClass("")
	s.advance(2 * time.Second)
	if ready := s.poolCondition("NodeClassReady"); ready.Status != metav1.ConditionFalse {
		t.Errorf("with a node class that is not Ready got %+v", ready)
	}
	s.handleMessage(s.resolvedMessage(class), "")
	s.advance(2 * time.Second)
	if got := s.getPool(); !got.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) || got.Status.NodeClassObservedGeneration != class.Generation {
		t.Errorf("with a node class that is Ready got %+v", got.Status)
	}
	s.updatePool(func(p *karpenter.NodePool) { p.Spec.Template.Labels = map[string]string{"karpenter.sh/team": "web"} })
	s.advance(2 * time.Second)
	if got := s.poolCondition("ValidationSucceeded"); got.Reason != "NodePoolValidationFailed" || strings.Contains(got.Message, "more)") || s.getPool().Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
		t.Errorf("with an invalid label got %+v", got)
	}
	quiet := s.getPool().ResourceVersion
	s.advance(10 * time.Second)
	if s.getPool().ResourceVersion != quiet {
		t.Error("an unchanged status was written")
	}
}

// A node of the pool counts in its status although its claim was deleted.
func TestNodePoolCountsNodeWithoutClaim(t *testing.T) {
	s := newTestCluster(t)
	s.SeedObjects(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "left", Labels: map[string]string{karpenter.NodePoolLabelKey: "default", karpenter.NodeInitializedLabelKey: "true"}},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/i-left"}, Status: corev1.NodeStatus{Capacity: cpu("3")},
	})
	s.advance(2 * time.Second)
	if got := s.getPool().Status; *got.Nodes != 1 || got.Resources.Cpu().Value() != 3 {
		t.Errorf("got %d nodes with %v, want one with 3 CPUs", *got.Nodes, got.Resources)
	}
}

// A pool with the node class of another provider is not written.
func TestForeignNodePoolIsNotWritten(t *testing.T) {
	s := newTestCluster(t)
	s.updatePool(func(p *karpenter.NodePool) { p.Spec.Template.Spec.NodeClassRef = autoModeClass })
	before := s.getPool().ResourceVersion
	s.advance(3 * time.Second)
	if s.getPool().ResourceVersion != before {
		t.Errorf("the pool was written: %+v", s.getPool())
	}
}

// A hash of an older version is replaced on the claims first, then on the pool.
func TestNodePoolHashVersion(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	const hash, version = karpenter.NodePoolHashAnnotationKey, karpenter.NodePoolHashVersionAnnotationKey
	s.updatePool(func(p *karpenter.NodePool) { p.Annotations[hash], p.Annotations[version] = "1", "v2" })
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
		o.GetAnnotations()[hash], o.GetAnnotations()[version] = "1", "v2"
	})
	s.advance(2 * time.Second)
	want, err := s.getPool().Hash()
	if err != nil {
		t.Fatal(err)
	}
	for of, annotations := range map[string]map[string]string{"pool": s.getPool().Annotations, "claim": s.getClaim("one-0").Annotations} {
		if annotations[hash] != want || annotations[version] != karpenter.NodePoolHashVersion {
			t.Errorf("the %s has the hash %s of version %s, want %s", of, annotations[hash], annotations[version], want)
		}
	}
}

// Two launches that time out make the pool unhealthy, even across restarts. A change of the pool
// resets the history.
func TestNodeRegistrationHealthy(t *testing.T) {
	s := newTestCluster(t)
	s.updatePool(func(p *karpenter.NodePool) {
		p.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Name: "default"}
	})
	s.addNodeClass("")
	s.advance(2 * time.Second)
	if got := s.poolCondition("NodeRegistrationHealthy"); got.Status != metav1.ConditionUnknown || got.Reason != "AwaitingReconciliation" {
		t.Fatalf("before any registration got %+v", got)
	}
	s.launchIntent("one", 3)
	owner := metav1.OwnerReference{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "default", UID: s.getPool().UID}
	for _, name := range []string{"one-0", "one-1", "one-2"} {
		s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: name}, func(o cluster.Object) { o.SetOwnerReferences([]metav1.OwnerReference{owner}) })
	}
	s.handleMessage(s.newMessage(launchSettled("one", 3, "i-1", "i-2", "i-3")), "")
	s.joinNode("node-1", "i-1")
	s.advance(5 * time.Second)
	if got := s.poolCondition("NodeRegistrationHealthy"); got.Status != metav1.ConditionTrue {
		t.Fatalf("after a registration got %+v", got)
	}
	s.now = s.now.Add(nodeclaim.RegistrationTimeout)
	for _, name := range []string{"one-1", "one-2"} {
		s.restartService()
		s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: name}, func(o cluster.Object) {
			o.GetAnnotations()[nodeclaim.FailedAnnotation] = nodeclaim.FailedRegistration
		})
		s.advance(2 * time.Second)
	}
	if got := s.poolCondition("NodeRegistrationHealthy"); got.Status != metav1.ConditionFalse || got.Reason != "RegistrationFailed" || got.Message != "Failed to register node" {
		t.Errorf("after two timeouts got %+v", got)
	}
	s.updatePool(func(p *karpenter.NodePool) { p.Spec.Limits = karpenter.Limits(cpu("100")) })
	s.advance(2 * time.Second)
	if got := s.poolCondition("NodeRegistrationHealthy"); got.Status != metav1.ConditionUnknown || got.ObservedGeneration != s.getPool().Generation {
		t.Errorf("after a change of the pool got %+v", got)
	}
}

// failingPoolClient fails to write one pool.
type failingPoolClient struct {
	cluster.Client
	pool string
}

func (u *failingPoolClient) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	if _, pool := o.(*karpenter.NodePool); pool && o.GetName() == u.pool {
		return nil, fault.F("updating", fault.Unknown, "no answer")
	}
	return u.Client.Update(ctx, o)
}

// A pool that cannot be written does not stop the status of others.
func TestStatusContinuesAfterFailedWrite(t *testing.T) {
	s := newTestCluster(t)
	s.SeedObjects(&karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "another"}})
	s.startService(&failingPoolClient{Client: s.ClientFor("lifecycle"), pool: "another"})
	for range 2 {
		s.cache.DeliverAll()
		if err := s.svc.Step(t.Context()); err == nil {
			t.Fatal("the error of a failed write was not returned")
		}
	}
	if got := s.getPool(); got.Status.Nodes == nil || got.Annotations[karpenter.NodePoolHashAnnotationKey] == "" {
		t.Errorf("the other pool was not written: %+v", got)
	}
}

// A claim that cannot be written stops neither the other claims of its class and pool nor the
// requests for the class. The pool is written last.
func TestRehashContinuesAfterBrokenClaim(t *testing.T) {
	s := newTestCluster(t)
	const hash, version = karpenter.NodePoolHashAnnotationKey, karpenter.NodePoolHashVersionAnnotationKey
	const classVersion = karpenter.EC2NodeClassHashVersionAnnotationKey
	s.launchIntent("one", 3)
	s.addNodeClass("role")
	s.advance(2 * time.Second)
	s.takeSent()
	s.ChangeObject(cluster.NodeClasses, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.GetAnnotations()[classVersion] = karpenter.EC2NodeClassHashVersion
	})
	s.updatePool(func(p *karpenter.NodePool) { p.Annotations[hash], p.Annotations[version] = "1", "v2" })
	for _, c := range s.listClaims() {
		s.ChangeObject(cluster.NodeClaims, cluster.KeyOf(c), func(o cluster.Object) {
			o.GetAnnotations()[version], o.GetAnnotations()[classVersion] = "v2", "v4"
			o.(*karpenter.NodeClaim).Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}
		})
	}
	s.now = s.now.Add(time.Minute)
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdate, Name: "one-1", As: fault.Invalid})
	for range 5 { // Each reconcile writes a claim once, because further writes would use an older version.
		s.now = s.now.Add(time.Second)
		s.cache.DeliverAll()
		if err := s.svc.Step(t.Context()); err == nil || !strings.Contains(err.Error(), "updating NodeClaim one-1: update NodeClaim one-1: injected fault") {
			t.Fatalf("the error was not returned: %v", err)
		}
	}
	for _, name := range []string{"one-0", "one-2"} {
		if a := s.getClaim(name).Annotations; a[version] != karpenter.NodePoolHashVersion || a[classVersion] != karpenter.EC2NodeClassHashVersion {
			t.Errorf("%s has the annotations %v", name, a)
		}
	}
	if got := s.getPool().Annotations[version]; got != "v2" {
		t.Errorf("the pool has hash version %s before all of its claims", got)
	}
	if got := typesAndSubjects(s.takeSent()); !slices.ContainsFunc(got, func(w string) bool { return strings.HasPrefix(w, "nodeclass.ensure") }) {
		t.Errorf("no request for the class was sent: %v", got)
	}
	s.ClearFaults()
	s.advance(5 * time.Second)
	if a := s.getClaim("one-1").Annotations; a[version] != karpenter.NodePoolHashVersion || s.getPool().Annotations[version] != karpenter.NodePoolHashVersion {
		t.Errorf("the hash version was not completed: the claim has %v, the pool %v", a, s.getPool().Annotations)
	}
}
