package nodepool_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool/registrationhealth"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// claim returns a launched claim with this estimated capacity.
func claim(capacity corev1.ResourceList, changes ...func(*karpenter.NodeClaim)) *karpenter.NodeClaim {
	c := &karpenter.NodeClaim{}
	c.Status.ProviderID = "aws:///eu-west-1a/i-1"
	c.Status.Capacity = capacity
	for _, change := range changes {
		change(c)
	}
	return c
}

func going(c *karpenter.NodeClaim)      { at := metav1.NewTime(noon); c.DeletionTimestamp = &at }
func unlaunched(c *karpenter.NodeClaim) { c.Status.ProviderID = "" }
func terminating(c *karpenter.NodeClaim) {
	c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeInstanceTerminating, Status: metav1.ConditionTrue}, noon)
}

func node(initialized bool, capacity corev1.ResourceList) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
	if initialized {
		n.Labels[karpenter.NodeInitializedLabelKey] = "true"
	}
	n.Status.Capacity = capacity
	return n
}

func goingNode(n *corev1.Node) *corev1.Node {
	at := metav1.NewTime(noon)
	n.DeletionTimestamp = &at
	return n
}

// The numbers come from Karpenter's own tests if these exist.
func TestPoolUsage(t *testing.T) {
	small := list("cpu", "100m", "pods", "256", "memory", "1Gi")
	large := list("cpu", "500m", "pods", "1000", "memory", "5Gi")
	real := list("cpu", "1", "pods", "512", "memory", "2Gi")
	none := list("cpu", "0", "memory", "0", "pods", "0", "ephemeral-storage", "0", "nodes", "0")
	of := func(nodes string, pairs ...string) corev1.ResourceList {
		return list(append([]string{"ephemeral-storage", "0", "nodes", nodes}, pairs...)...)
	}
	for _, test := range []struct {
		name    string
		members []nodepool.Member
		want    corev1.ResourceList
	}{
		{"nothing", nil, none},
		{"a claim", []nodepool.Member{{Claim: claim(small)}}, of("1", "cpu", "100m", "pods", "256", "memory", "1Gi")},
		{"two claims", []nodepool.Member{{Claim: claim(small)}, {Claim: claim(large)}}, of("2", "cpu", "600m", "pods", "1256", "memory", "6Gi")},
		{"not launched", []nodepool.Member{{Claim: claim(small, unlaunched)}}, none},
		{"going", []nodepool.Member{{Claim: claim(small, going), Node: node(true, real)}}, none},
		{"its instance is being terminated", []nodepool.Member{{Claim: claim(small, terminating), Node: node(true, real)}}, none},
		{"a node without resources yet", []nodepool.Member{{Claim: claim(small), Node: node(false, nil)}}, of("1", "cpu", "100m", "pods", "256", "memory", "1Gi")},
		{"a node with some resources", []nodepool.Member{{Claim: claim(list("cpu", "1", "nvidia.com/gpu", "4")), Node: node(false, list("cpu", "2", "nvidia.com/gpu", "0", "pods", "0"))}},
			of("1", "cpu", "2", "memory", "0", "pods", "0", "nvidia.com/gpu", "4")},
		{"an initialized node", []nodepool.Member{{Claim: claim(small), Node: node(true, real)}}, of("1", "cpu", "1", "pods", "512", "memory", "2Gi")},
		{"an initialized node that lacks a device", []nodepool.Member{{Claim: claim(list("nvidia.com/gpu", "4")), Node: node(true, real)}}, of("1", "cpu", "1", "pods", "512", "memory", "2Gi")},
		{"a node whose claim was deleted", []nodepool.Member{{Node: node(true, real)}}, of("1", "cpu", "1", "pods", "512", "memory", "2Gi")},
		{"a node being deleted whose claim was deleted", []nodepool.Member{{Node: goingNode(node(true, real))}}, none},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, nodepool.Usage(test.members)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Usage must not change its input, which belongs to the cache.
func TestUsageChangesNothing(t *testing.T) {
	c := claim(list("cpu", "1"))
	before := c.DeepCopy()
	nodepool.Usage([]nodepool.Member{{Claim: c}, {Claim: c}, {Claim: c}})
	if diff := cmp.Diff(before, c); diff != "" {
		t.Error(diff)
	}
}

func nodePool(changes ...func(*karpenter.NodePool)) *karpenter.NodePool {
	p := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 2}}
	p.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "web"}
	for _, change := range changes {
		change(p)
	}
	return p
}

func nodeClass(ready ...metav1.Condition) *karpenter.EC2NodeClass {
	c := &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 5}}
	for _, r := range ready {
		r.Type = karpenter.ConditionTypeReady
		c.Status.Conditions = c.Status.Conditions.With(r, noon)
	}
	return c
}

func goingClass(c *karpenter.EC2NodeClass) *karpenter.EC2NodeClass {
	at := metav1.NewTime(noon)
	c.DeletionTimestamp = &at
	return c
}

func invalid(p *karpenter.NodePool) {
	p.Spec.Template.Labels = map[string]string{"a b": "c", "d e": "f"}
}

func TestConditions(t *testing.T) {
	good := metav1.Condition{Status: metav1.ConditionTrue, Reason: "Ready"}
	bad := metav1.Condition{Status: metav1.ConditionFalse, Reason: "UnhealthyDependents", Message: "SubnetsReady=False"}
	const notFound = `NodeClassReady=False NodeClassNotFound: NodeClass not found on cluster: create EC2NodeClass "web", or correct spec.template.spec.nodeClassRef`
	const healthUnknown = "NodeRegistrationHealthy=Unknown AwaitingReconciliation: object is awaiting reconciliation"
	const valid, ready = "ValidationSucceeded=True ValidationSucceeded: ", "NodeClassReady=True NodeClassReady: "
	for _, test := range []struct {
		name  string
		pool  *karpenter.NodePool
		class *karpenter.EC2NodeClass
		want  []string
	}{
		{"no class", nodePool(), nil, []string{valid, notFound, "Ready=False UnhealthyDependents: NodeClassReady=False"}},
		{"a class being deleted", nodePool(), goingClass(nodeClass(good)), []string{valid, "NodeClassReady=False NodeClassTerminating: NodeClass is Terminating", healthUnknown, "Ready=False UnhealthyDependents: NodeClassReady=False"}},
		{"a class without conditions", nodePool(), nodeClass(), []string{valid, "NodeClassReady=False NodeClassReadinessUnknown: Node Class Readiness Unknown", healthUnknown, "Ready=False UnhealthyDependents: NodeClassReady=False"}},
		{"a class that is not ready", nodePool(), nodeClass(bad), []string{valid, "NodeClassReady=False UnhealthyDependents: SubnetsReady=False", healthUnknown, "Ready=False UnhealthyDependents: NodeClassReady=False"}},
		{"everything is ready", nodePool(), nodeClass(good), []string{valid, ready, healthUnknown, "Ready=True Ready: "}},
		{"invalid", nodePool(invalid), nodeClass(good), []string{
			"ValidationSucceeded=False NodePoolValidationFailed: spec.template.metadata.labels[a b]: the key is wrong: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') (and 1 more)",
			ready, healthUnknown, "Ready=False UnhealthyDependents: ValidationSucceeded=False"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			view := nodepool.View{Pool: test.pool, Class: test.class, Now: noon}
			if test.class != nil {
				view.Health = registrationhealth.ReadHistory(test.pool, test.class, noon)
			}
			got := nodepool.ComputeStatus(view)
			var conditions []string
			for _, c := range got.Conditions {
				conditions = append(conditions, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
				if c.ObservedGeneration != 2 || !c.LastTransitionTime.Time.Equal(noon) {
					t.Errorf("%s has generation %d and transition time %s", c.Type, c.ObservedGeneration, c.LastTransitionTime)
				}
			}
			if diff := cmp.Diff(test.want, conditions); diff != "" {
				t.Error(diff)
			}
			if test.class != nil && got.NodeClassObservedGeneration != 5 {
				t.Errorf("got observed generation of the class %d", got.NodeClassObservedGeneration)
			}
			if got.Nodes == nil || *got.Nodes != 0 {
				t.Errorf("got node count %v, want 0", got.Nodes)
			}
		})
	}
}

// A hash of an older version is replaced by the pool's, except on a claim with the condition
// Drifted.
func TestClaimsAreRehashed(t *testing.T) {
	const hashKey, versionKey = karpenter.NodePoolHashAnnotationKey, karpenter.NodePoolHashVersionAnnotationKey
	hashed := func(hash, version string, conditions ...string) *karpenter.NodeClaim {
		c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hashKey: hash, versionKey: version, "keep": "this"}}}
		for _, kind := range conditions {
			c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: kind, Status: metav1.ConditionTrue}, noon)
		}
		return c
	}
	p := nodePool()
	want, err := nodepool.HashAnnotations(p)
	if err != nil || want[versionKey] != karpenter.NodePoolHashVersion || want[hashKey] == "" {
		t.Fatal(want, err)
	}
	claims := []*karpenter.NodeClaim{
		hashed("1", "v2"), hashed("2", karpenter.NodePoolHashVersion), hashed("3", "v2", karpenter.ConditionTypeDrifted), {},
	}
	before := claims[0].DeepCopy()
	p.Annotations = map[string]string{hashKey: "0", versionKey: "v2"}
	var got []map[string]string
	for _, c := range nodepool.RehashClaims(p, want, claims) {
		got = append(got, c.Annotations)
	}
	version := karpenter.NodePoolHashVersion
	if diff := cmp.Diff([]map[string]string{
		{hashKey: want[hashKey], versionKey: version, "keep": "this"}, {hashKey: "3", versionKey: version, "keep": "this"}, {hashKey: want[hashKey], versionKey: version},
	}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, claims[0]); diff != "" {
		t.Errorf("the given claim was changed: %s", diff)
	}
	p.Annotations[versionKey] = version
	if got := nodepool.RehashClaims(p, want, claims); len(got) != 0 {
		t.Errorf("rehashed %d claims of a pool with the current hash version", len(got))
	}
}
