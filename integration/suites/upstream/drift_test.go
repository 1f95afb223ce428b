package upstream

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpscheduling "sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// drawn draws pools and claims whose labels and requirements overlap.
type drawn struct{ *rand.Rand }

func (d drawn) of(words ...string) string { return words[d.IntN(len(words))] }

// values are the values of the requirements' labels, well-known ones and others.
var values = map[string][]string{
	corev1.LabelTopologyZone: {"a", "b", "c"}, corev1.LabelFailureDomainBetaZone: {"a", "b", "c"}, corev1.LabelArchStable: {"amd64", "arm64"},
	karpenter.LabelInstanceCPU: {"2", "4", "16"}, karpenter.LabelInstanceFamily: {"m6i", "c7g"}, "team": {"web", "db"}, "example.com/tier": {"1", "2"},
}

var keys = []string{
	corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone, corev1.LabelArchStable,
	karpenter.LabelInstanceCPU, karpenter.LabelInstanceFamily, "team", "example.com/tier",
}

func (d drawn) requirement() karpenter.NodeSelectorRequirementWithMinValues {
	key := d.of(keys...)
	out := karpenter.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOperator(d.of("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))}
	switch out.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		for range 1 + d.IntN(2) {
			out.Values = append(out.Values, d.of(values[key]...))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		out.Key, out.Values = d.of(karpenter.LabelInstanceCPU, "example.com/tier"), []string{d.of("1", "3", "8")}
	}
	return out
}

// forgetful reports requirements that upstream treats as weaker: with NotIn it ignores
// that Exists, Gt and Lt require the label to exist.
func forgetful(list []karpenter.NodeSelectorRequirementWithMinValues) bool {
	there, not := map[string]bool{}, map[string]bool{}
	for _, r := range list {
		key := karpenter.NormalizeLabel(r.Key)
		switch r.Operator {
		case corev1.NodeSelectorOpNotIn:
			not[key] = true
		case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			there[key] = true
		}
		if there[key] && not[key] {
			return true
		}
	}
	return false
}

func (d drawn) labels() map[string]string {
	out := map[string]string{}
	for _, key := range keys {
		if d.IntN(3) > 0 && key != corev1.LabelFailureDomainBetaZone {
			out[key] = d.of(values[key]...)
		}
	}
	return out
}

// Joist and upstream find the same claims that no longer match their pool's requirements,
// for a thousand pools with one claim each.
func TestSameRequirementsDrift(t *testing.T) {
	const pools = 1000
	d, now := drawn{rand.New(rand.NewPCG(1, 1))}, memcluster.Epoch
	clock := func() time.Time { return now }
	server := memcluster.New(memcluster.Options{Now: clock})
	want := map[string]bool{}
	for i := range pools {
		name := fmt.Sprintf("pool-%d", i)
		pool := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for len(pool.Spec.Template.Spec.Requirements) == 0 || forgetful(pool.Spec.Template.Spec.Requirements) {
			pool.Spec.Template.Spec.Requirements = nil
			for range 1 + d.IntN(3) {
				pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, d.requirement())
			}
		}
		claim := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: d.labels(), CreationTimestamp: metav1.NewTime(now), Finalizers: []string{karpenter.TerminationFinalizer},
		}}
		claim.Labels[karpenter.NodePoolLabelKey] = name
		claim.Status.ProviderID = fmt.Sprintf("aws:///a/i-%d", i)
		claim.Status.Conditions = claim.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeLaunched, Status: metav1.ConditionTrue}, now)
		server.SeedObjects(pool, claim)
		want[name] = drifts(t, pool, claim)
	}
	cache := server.NewCache(memcluster.CacheOptions{})
	service := lifecycle.New(lifecycle.Config{
		Client: server.ClientFor("lifecycle"), Cache: cache, Blobs: memblob.New(memblob.Options{Now: clock}), Holder: "one", Region: "eu-west-1",
		Launcher: memqueue.New(memqueue.Options{Now: clock}).Queue("launcher", memqueue.QueueOptions{}), Cluster: event.Cluster{Name: "c", UID: "u"},
		Namespace: "kube-system", KarpenterNamespace: "kube-system", Now: clock,
	})
	for range 3 {
		now = now.Add(time.Second)
		cache.DeliverAll()
		if err := service.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	claims, err := cluster.List[*karpenter.NodeClaim](t.Context(), server, cluster.NodeClaims)
	if err != nil || len(claims) != pools {
		t.Fatalf("%d claims, %v", len(claims), err)
	}
	drifted := 0
	for _, c := range claims {
		condition, got := c.Status.Conditions.Get(karpenter.ConditionTypeDrifted)
		if got != want[c.Name] || got && condition.Reason != "RequirementsDrifted" {
			t.Errorf("%s with %v: drifted %v (%s), upstream %v", c.Name, c.Labels, got, condition.Reason, want[c.Name])
		}
		if got {
			drifted++
		}
	}
	if drifted < pools/5 || drifted > pools*4/5 {
		t.Errorf("%d of %d claims drifted, want between a fifth and four fifths", drifted, pools)
	}
}

// drifts returns upstream's answer.
func drifts(t *testing.T, pool *karpenter.NodePool, claim *karpenter.NodeClaim) bool {
	t.Helper()
	var theirs karpv1.NodePool
	decode(t, encode(t, pool), &theirs)
	is := karpscheduling.NewLabelRequirements(claim.Labels)
	return is.Compatible(karpscheduling.NewNodeSelectorRequirementsWithMinValues(theirs.Spec.Template.Spec.Requirements...)) != nil
}
