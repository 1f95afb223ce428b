package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// seedForeignClaim adds a launched NodeClaim of another provider, and its node. Its NodePool is Joist's since its node
// class was replaced.
func (s *testCluster) seedForeignClaim(providerID string, ready corev1.ConditionStatus) {
	s.t.Helper()
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "foreign", Labels: map[string]string{karpenter.NodePoolLabelKey: "default"}, Finalizers: []string{karpenter.TerminationFinalizer},
		CreationTimestamp: metav1.NewTime(s.now),
	}}
	c.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	c.Status.ProviderID, c.Status.NodeName = providerID, "foreign"
	c.Status.Conditions = conditions.WithTrue(c, karpenter.ConditionTypeLaunched, s.now)
	s.SeedObjects(c)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "foreign", Labels: map[string]string{karpenter.NodePoolLabelKey: "default"}}}
	node.Spec.ProviderID = providerID
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(s.now)}}
	s.SeedObjects(node)
}

// NodeClaims of another provider in the cluster are that provider's: inventories of EC2 do not have their instances, and
// neither drift nor node repair nor interruptions of an instance with the same id concern them.
func TestForeignNodeClaimsAreKept(t *testing.T) {
	for _, providerID := range []string{"kwok://foreign", "aws:///eu-west-1a/i-7"} {
		s := withClassHash(t)
		s.configureService(func(c *lifecycle.Config) {
			c.LegacyRepair = repair.PolicySet{Policies: repair.LegacyProvider(), Unhealthy: intstr.FromString("100%")}
		})
		s.seedForeignClaim(providerID, corev1.ConditionUnknown)
		before := s.getClaim("foreign")
		for range 3 {
			s.now = s.now.Add(time.Hour)
			s.handleMessage(s.inventoryMessage(s.now, listedInstance("i-1", "one", "one-0")), "")
			s.advance(10 * time.Second)
		}
		s.handleMessage(s.newMessage(event.InstanceGone{InstanceID: "i-7", Shown: s.now}), "")
		s.advance(10 * time.Second)
		if diff := cmp.Diff(before, s.getClaim("foreign")); diff != "" {
			t.Errorf("%s: the NodeClaim was changed:\n%s", providerID, diff)
		}
		if _, err := s.Get(t.Context(), cluster.Nodes, cluster.Key{Name: "foreign"}); err != nil {
			t.Errorf("%s: its Node: %v", providerID, err)
		}
	}
}

// autoModeClass is a node class of EKS Auto Mode with the name of an EC2NodeClass.
var autoModeClass = &karpenter.NodeClassReference{Group: "eks.amazonaws.com", Kind: "NodeClass", Name: "default"}

// A NodePool of EKS Auto Mode has no metrics and Events of Joist's, and its NodeClaims are not changed when a plan places pods on them,
// or replaces pods of their nodes.
func TestNodePoolsOfAutoMode(t *testing.T) {
	s := newTestCluster(t)
	s.setZone()
	auto := s.getPool().DeepCopy()
	auto.ObjectMeta = metav1.ObjectMeta{Name: "general-purpose", Generation: 7}
	auto.Spec.Template.Spec.NodeClassRef, auto.Spec.Limits = autoModeClass, karpenter.Limits{corev1.ResourceCPU: resource.MustParse("100")}
	s.SeedObjects(auto)
	s.seedForeignClaim("aws:///eu-west-1a/i-7", corev1.ConditionTrue)
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "foreign"}, func(o cluster.Object) {
		c := o.(*karpenter.NodeClaim)
		c.Labels[karpenter.NodePoolLabelKey], c.Spec.NodeClassRef = auto.Name, autoModeClass
		c.DeletionTimestamp = new(metav1.NewTime(s.now))
	})
	recorded := s.countMetricsOf(func(string) bool { return true })
	s.advance(10 * time.Second)
	before := s.getClaim("foreign")
	s.handleMessage(s.inventoryWithShifts([]event.ShiftedZone{{ZoneID: zone}}), "")
	held := s.startBatch()
	s.handleMessage(s.planMadeMessage(held, planning.Plan{Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Nominations: []planning.Nomination{
		{Claim: "foreign", Namespace: "default", Pod: planning.PodRef{Name: "web"}}, {Claim: "one-0", Namespace: "default", Pod: planning.PodRef{Name: "api", Node: "foreign"}},
	}}), "")
	s.advance(10 * time.Second)
	if diff := cmp.Diff(before, s.getClaim("foreign")); diff != "" {
		t.Errorf("the NodeClaim was changed:\n%s", diff)
	}
	for _, line := range *recorded {
		if strings.Contains(line, auto.Name) {
			t.Errorf("recorded %s", line)
		}
	}
	for _, e := range s.Events() {
		if e.About.GetName() == auto.Name {
			t.Errorf("Event %s: %s", e.Reason, e.Message)
		}
	}
}
