package collect_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

var noon = memcluster.Epoch

const providerID = "aws:///eu-west-1a/i-1"

// collectAll returns the view of a cluster with these objects.
func collectAll(objects ...cluster.Object) collect.View { return inputs(collect.Inputs{}, objects...) }

func inputs(what collect.Inputs, objects ...cluster.Object) collect.View {
	server := memcluster.New(memcluster.Options{})
	server.SeedObjects(objects...)
	cache := server.NewCache(memcluster.CacheOptions{FindMutated: true})
	cache.DeliverAll()
	what.Cluster, what.Now = event.Cluster{Name: "prod", UID: "uid"}, noon
	view := collect.CollectAll(cache, what)
	if changed := cache.ListMutated(); len(changed) > 0 {
		panic("objects of the cache were mutated: " + strings.Join(changed, ", "))
	}
	if diff := trimsAlike(cache, what, view); diff != "" {
		panic("trimmed objects make another view (-whole +trimmed):\n" + diff)
	}
	return view
}

func pod(name, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list("cpu", "1")}}}
	p.Status.Phase = corev1.PodRunning
	if node == "" {
		p.Status.Phase = corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func list(name, amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(amount)}
}

func owner(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "x", Controller: &yes, UID: "x"}}
		if kind == "ReplicationController" {
			p.OwnerReferences[0].APIVersion = "v1"
		}
	}
}

func doNotDisrupt(p *corev1.Pod) {
	p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}
}

func node(name string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"on": "node"}}}
	n.Spec.ProviderID = providerID
	n.Status.Allocatable, n.Status.Capacity = list("cpu", "4"), list("cpu", "4")
	for _, change := range changes {
		change(n)
	}
	return n
}

func disrupted(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, karpenter.DisruptedTaint()) }

func claim(name string, changes ...func(*karpenter.NodeClaim)) *karpenter.NodeClaim {
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Labels: map[string]string{karpenter.NodePoolLabelKey: "default"}, Annotations: map[string]string{},
	}}
	c.Spec.Resources.Requests = list("cpu", "3")
	c.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}
	for _, change := range changes {
		change(c)
	}
	return c
}

func launched(c *karpenter.NodeClaim) {
	c.Status.ProviderID, c.Status.ImageID = providerID, "ami-1"
	c.Status.Capacity, c.Status.Allocatable = list("cpu", "8"), list("cpu", "7")
	c.Labels[corev1.LabelInstanceTypeStable] = "m6i.large"
}

func registered(c *karpenter.NodeClaim) {
	launched(c)
	for _, kind := range karpenter.NodeClaimReady() {
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: kind, Status: metav1.ConditionTrue}, noon)
	}
}

// deleteClaim marks a claim as being deleted, so that its node is being removed.
func deleteClaim(c *karpenter.NodeClaim) {
	at := metav1.NewTime(noon)
	c.DeletionTimestamp, c.Finalizers = &at, []string{karpenter.TerminationFinalizer}
}

func withAnnotation(key, value string) func(*karpenter.NodeClaim) {
	return func(c *karpenter.NodeClaim) { c.Annotations[key] = value }
}

// A batch contains pending pods, and pods whose node is being removed.
func TestPendingPods(t *testing.T) {
	going := []cluster.Object{node("n", disrupted), claim("c", registered, deleteClaim)}
	deadline := []cluster.Object{node("n", disrupted), claim("c", registered, deleteClaim, withAnnotation(karpenter.NodeClaimTerminationTimestampAnnotationKey, noon.Add(time.Minute).Format(time.RFC3339)))}
	staying := []cluster.Object{node("n"), claim("c", registered)}
	for _, test := range []struct {
		name    string
		objects []cluster.Object
		pod     *corev1.Pod
		want    []string
	}{
		{"waits", nil, pod("p", ""), []string{"p@"}},
		{"not yet considered by the scheduler", nil, pod("p", "", func(p *corev1.Pod) { p.Status.Conditions = nil }), nil},
		{"runs", staying, pod("p", "n"), nil},
		{"running on a node being deleted", going, pod("p", "n"), []string{"p@n"}},
		{"running on a node whose claim is being deleted", []cluster.Object{node("n"), claim("c", registered, deleteClaim)}, pod("p", "n"), []string{"p@n"}},
		{"ended on a node being deleted", going, pod("p", "n", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), nil},
		{"terminating on a node being deleted", going, pod("p", "n", func(p *corev1.Pod) {
			at, grace := metav1.NewTime(noon.Add(time.Minute)), int64(60)
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
		}), nil},
		{"a DaemonSet pod on a node being deleted", going, pod("p", "n", owner("DaemonSet")), nil},
		{"do-not-disrupt on a node being deleted", going, pod("p", "n", doNotDisrupt), nil},
		{"do-not-disrupt on a node with a deadline", deadline, pod("p", "n", doNotDisrupt), []string{"p@n"}},
		{"do-not-disrupt and pending", going, pod("p", "", doNotDisrupt), []string{"p@"}},
	} {
		view := collectAll(append(slices.Clone(test.objects), test.pod)...)
		if diff := cmp.Diff(test.want, view.PendingKeys()); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
	}
}

// budget returns a PodDisruptionBudget for every pod of the namespace.
func budget(name string, change func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	b.Spec.Selector = &metav1.LabelSelector{}
	change(b)
	return b
}

// Pods of a node that is being removed are planned before they are pending: pods that must leave
// soon, even if protected, and no pod that may stay.
func TestPodsOfNodesBeingRemoved(t *testing.T) {
	at := metav1.NewTime(noon)
	goes := map[string][]cluster.Object{
		"taint, without a claim": {node("n", disrupted)},
		"claim deleted":          {node("n"), claim("c", registered, deleteClaim)},
		"node deleted": {node("n", func(n *corev1.Node) {
			n.DeletionTimestamp, n.Finalizers = &at, []string{karpenter.TerminationFinalizer}
		}), claim("c", registered)},
		"instance terminating": {node("n"), claim("c", registered, func(c *karpenter.NodeClaim) {
			c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeInstanceTerminating, Status: metav1.ConditionTrue}, noon)
		})},
	}
	none, all := intstr.FromInt32(0), intstr.FromString("100%")
	never := func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = &none }
	unready := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	}
	length := func(text string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: text}
			begun := metav1.NewTime(noon.Add(-time.Hour))
			p.Status.StartTime = &begun
		}
	}
	leaving := func(p *corev1.Pod) {
		grace := int64(60)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	}
	for _, test := range []struct {
		name    string
		budgets []cluster.Object
		pod     []func(*corev1.Pod)
		want    bool          // without a deadline
		until   time.Duration // until it will be planned
	}{
		{name: "not protected", want: true},
		{name: "a budget that allows no eviction now", budgets: []cluster.Object{budget("b", func(*policyv1.PodDisruptionBudget) {})}, want: true},
		{name: "a budget that never allows an eviction", budgets: []cluster.Object{budget("b", never)}},
		{name: "all must be available", budgets: []cluster.Object{budget("b", func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = &all })}},
		{name: "two budgets", budgets: []cluster.Object{budget("b", func(*policyv1.PodDisruptionBudget) {}), budget("c", func(*policyv1.PodDisruptionBudget) {})}},
		{name: "a budget of other pods", budgets: []cluster.Object{budget("b", func(b *policyv1.PodDisruptionBudget) {
			never(b)
			b.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
		})}, want: true},
		{name: "not ready, and the budget allows its eviction", pod: []func(*corev1.Pod){unready}, budgets: []cluster.Object{budget("b", func(b *policyv1.PodDisruptionBudget) {
			never(b)
			b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
		})}, want: true},
		{name: "do-not-disrupt", pod: []func(*corev1.Pod){doNotDisrupt}},
		{name: "do-not-disrupt for another ten minutes", pod: []func(*corev1.Pod){length("70m")}, until: 10 * time.Minute},
		{name: "do-not-disrupt is over", pod: []func(*corev1.Pod){length("60m")}, want: true},
		{name: "do-not-disrupt has an invalid value", pod: []func(*corev1.Pod){length("yes")}, want: true},
		{name: "terminating, of a StatefulSet", pod: []func(*corev1.Pod){owner("StatefulSet"), leaving}, budgets: []cluster.Object{budget("b", never)}, want: true},
	} {
		for how, objects := range goes {
			objects = append(slices.Clone(objects), append(test.budgets, pod("p", "n", test.pod...))...)
			view := collectAll(objects...)
			if got := len(view.PendingKeys()) == 1; got != test.want {
				t.Errorf("%s, %s: planned: %v", test.name, how, got)
			}
			if want := noon.Add(test.until); test.until > 0 && !view.Expires.Equal(want) || test.until == 0 && !view.Expires.IsZero() {
				t.Errorf("%s, %s: the view expires at %v", test.name, how, view.Expires)
			}
		}
	}
	for _, test := range []struct {
		name  string
		left  time.Duration
		want  bool
		until time.Duration
	}{
		{"two minutes away, as after a spot notice", 2 * time.Minute, true, 0},
		{"near", replanLead + 30*time.Second, true, 0},
		{"more than replanLead away", replanLead + 31*time.Second, false, time.Second},
		{"past", -time.Minute, true, 0},
	} {
		for name, protect := range map[string]cluster.Object{"a budget": budget("b", never), "do-not-disrupt": pod("q", "", doNotDisrupt)} {
			p := pod("p", "n")
			if name == "do-not-disrupt" {
				p, protect = pod("p", "n", doNotDisrupt), node("other")
			}
			deadline := withAnnotation(karpenter.NodeClaimTerminationTimestampAnnotationKey, noon.Add(test.left).Format(time.RFC3339))
			view := collectAll(node("n", disrupted), claim("c", registered, deleteClaim, deadline), protect, p)
			if got := len(view.PendingKeys()) == 1; got != test.want {
				t.Errorf("deadline %s, protected by %s: planned: %v", test.name, name, got)
			}
			if test.until > 0 && !view.Expires.Equal(noon.Add(test.until)) || test.until == 0 && !view.Expires.IsZero() {
				t.Errorf("deadline %s, protected by %s: the view expires at %v", test.name, name, view.Expires)
			}
		}
	}
}

// A node that a proposal is about to replace receives no pods, and its own are not planned, because
// the proposal has launched nodes for them. They are planned once the node is being removed. After
// a rollback the node is as before.
func TestReplacedPodsAreNotPlannedTwice(t *testing.T) {
	confirmed := withAnnotation(planning.ProposalAnnotation, `{"id":"p-1","reason":"Underutilized","proposed":"2026-01-01T00:00:00Z","confirmed":"2026-01-01T00:00:20Z","replacements":["r"]}`)
	for _, test := range []struct {
		name         string
		node         *corev1.Node
		claim        *karpenter.NodeClaim
		going, plans bool
	}{
		{"an ordinary node", node("n"), claim("c", registered), false, false},
		{"confirmed, not tainted yet", node("n"), claim("c", registered, confirmed), false, false},
		{"confirmed and tainted", node("n", disrupted), claim("c", registered, confirmed), true, false},
		{"rolled back, the taint is removed later", node("n", disrupted), claim("c", registered), true, false},
		{"confirmed, replaced and being deleted", node("n", disrupted), claim("c", registered, confirmed, deleteClaim), true, true},
	} {
		view := collectAll(test.node, test.claim, pod("p", "n"))
		if got := view.Snapshot.Nodes[0].MarkedForDeletion; got != test.going {
			t.Errorf("%s: got MarkedForDeletion %v", test.name, got)
		}
		if got := len(view.Pending) > 0; got != test.plans {
			t.Errorf("%s: its pods are planned: %v", test.name, got)
		}
	}
}

// The capacity of a replacement is reserved for the pods of the node that waits for it. Once that
// node is being removed, its pods are pending and the capacity is free for them.
func TestReplacementsReserveCapacity(t *testing.T) {
	confirmed := withAnnotation(planning.ProposalAnnotation, `{"id":"p-1","reason":"Underutilized","proposed":"2026-01-01T00:00:00Z","confirmed":"2026-01-01T00:00:20Z","replacements":["r"]}`)
	proposed := withAnnotation(planning.ProposalAnnotation, `{"id":"p-1","reason":"Underutilized","proposed":"2026-01-01T00:00:00Z"}`)
	replacement := claim("r", withAnnotation(planning.ExpectedPodsAnnotation, "p,gone"))
	other := claim("other", withAnnotation(planning.ExpectedPodsAnnotation, "p"))
	leaving := func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(noon)), new(int64(60))
	}
	for _, test := range []struct {
		name  string
		claim *karpenter.NodeClaim
		pod   *corev1.Pod
		want  int64
	}{
		{"confirmed", claim("c", registered, confirmed), pod("p", "n"), 1},
		{"proposed", claim("c", registered, proposed), pod("p", "n"), 0},
		{"rolled back", claim("c", registered), pod("p", "n"), 0},
		{"node being deleted", claim("c", registered, confirmed, deleteClaim), pod("p", "n"), 0},
		{"pod being deleted", claim("c", registered, confirmed), pod("p", "n", leaving), 0},
	} {
		for _, node := range collectAll(node("n"), test.claim, replacement, other, test.pod).Snapshot.Nodes {
			want := test.want
			if node.Claim != "r" {
				want = 0
			}
			if got := node.Used.Cpu().Value(); node.Claim != "c" && got != want {
				t.Errorf("%s: on %s %d CPUs are used, want %d", test.name, node.Claim, got, want)
			}
		}
	}
}

// These fields of a claim determine its disruption.
func TestDisruptionFieldsOfClaims(t *testing.T) {
	since := metav1.NewTime(noon.Add(-time.Hour))
	telling := func(c *karpenter.NodeClaim) {
		c.CreationTimestamp = since
		c.Spec.ExpireAfter = karpenter.DurationOf(24 * time.Hour)
		c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Minute}
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeDrifted, Status: metav1.ConditionTrue, Reason: "AMIDrift"}, since.Time)
	}
	undrifted := func(c *karpenter.NodeClaim) {
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeDrifted, Status: metav1.ConditionFalse, Reason: "AMIDrift"}, since.Time)
	}
	terminating := func(c *karpenter.NodeClaim) {
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeInstanceTerminating, Status: metav1.ConditionTrue}, since.Time)
	}
	if got := collectAll(node("n"), claim("c", registered, deleteClaim)).Snapshot.Nodes[0]; !got.MarkedForDeletion || got.Terminating {
		t.Errorf("claim being deleted: MarkedForDeletion %v, Terminating %v", got.MarkedForDeletion, got.Terminating)
	}
	if got := collectAll(node("n"), claim("c", registered, deleteClaim, terminating)).Snapshot.Nodes[0]; !got.MarkedForDeletion || !got.Terminating {
		t.Errorf("instance terminating: MarkedForDeletion %v, Terminating %v", got.MarkedForDeletion, got.Terminating)
	}
	for name, objects := range map[string][]cluster.Object{
		"joined": {node("n"), claim("c", registered, telling)}, "coming": {claim("c", launched, telling)},
	} {
		got := collectAll(objects...).Snapshot.Nodes[0]
		if !got.HasTerminationGracePeriod || !got.ExpiresAt.Equal(since.Add(24*time.Hour)) || got.Drift == nil || *got.Drift != (planning.Drift{Reason: "AMIDrift", Since: since.UTC()}) {
			t.Errorf("%s: grace period %v, expires %v, drift %+v", name, got.HasTerminationGracePeriod, got.ExpiresAt, got.Drift)
		}
	}
	if got := collectAll(node("n"), claim("c", registered, undrifted)).Snapshot.Nodes[0]; got.HasTerminationGracePeriod || !got.ExpiresAt.IsZero() || got.Drift != nil {
		t.Errorf("a claim without these fields: grace period %v, expires %v, drift %+v", got.HasTerminationGracePeriod, got.ExpiresAt, got.Drift)
	}
}

// replanLead is how long before its deadline a protected pod is planned elsewhere.
const replanLead = 5 * time.Minute

// Two claims of one instance are one node, which belongs to the older claim.
func TestOneInstanceWithTwoClaims(t *testing.T) {
	born := func(after time.Duration) func(*karpenter.NodeClaim) {
		return func(c *karpenter.NodeClaim) { c.CreationTimestamp = metav1.NewTime(noon.Add(after)) }
	}
	young, old := claim("a", launched, born(time.Minute)), claim("b", launched, born(0))
	for name, objects := range map[string][]cluster.Object{"not joined": {young, old}, "joined": {young, old, node("n")}} {
		nodes := collectAll(objects...).Snapshot.Nodes
		if len(nodes) != 1 || nodes[0].Claim != "b" {
			t.Errorf("%s: got nodes %+v", name, nodes)
		}
	}
}

// The capacity of a claim at each stage of its life.
func TestNodeCapacityByStage(t *testing.T) {
	one := func(objects ...cluster.Object) planning.Node {
		t.Helper()
		nodes := collectAll(objects...).Snapshot.Nodes
		if len(nodes) != 1 {
			t.Fatalf("%d nodes: %+v", len(nodes), nodes)
		}
		return nodes[0]
	}
	cpu := func(n planning.Node) int64 { return n.Allocatable.Cpu().Value() }

	planned := one(claim("c"))
	if planned.Launched || cpu(planned) != 3 || len(planned.Requirements) != 1 || planned.Name != "c" {
		t.Errorf("a planned claim has %+v", planned)
	}
	unlabelled := one(claim("c", launched, func(c *karpenter.NodeClaim) { delete(c.Labels, corev1.LabelInstanceTypeStable) }))
	if unlabelled.Launched || cpu(unlabelled) != 3 || len(unlabelled.Requirements) != 1 {
		t.Errorf("a bound claim without labels has %+v", unlabelled)
	}
	bound := one(claim("c", launched))
	if !bound.Launched || cpu(bound) != 7 || bound.Requirements != nil || bound.Instance != "i-1" {
		t.Errorf("a launched claim has %+v", bound)
	}
	late := one(claim("c", launched, func(c *karpenter.NodeClaim) {
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeLaunched, Status: metav1.ConditionTrue}, noon)
	}))
	if !bound.LaunchedAt.IsZero() || !late.LaunchedAt.Equal(noon) {
		t.Errorf("launched at %s without the condition, and at %s with it", bound.LaunchedAt, late.LaunchedAt)
	}
	silent := one(claim("c", registered), node("n", func(n *corev1.Node) { n.Status.Allocatable = nil }))
	if silent.Name != "n" || silent.Claim != "c" || cpu(silent) != 7 {
		t.Errorf("a node without reported capacity has %+v", silent)
	}
	joined := one(claim("c", launched, func(c *karpenter.NodeClaim) { c.Labels["on"] = "claim" }), node("n"))
	if joined.Registered || joined.Labels["on"] != "node" || joined.Labels[karpenter.NodePoolLabelKey] != "default" {
		t.Errorf("a joined node that is not registered has %+v", joined)
	}
	running := one(claim("c", registered, withAnnotation(planning.PriceAnnotation, "0.0301")), node("n"), pod("p", "n"), pod("d", "n", owner("DaemonSet")), pod("done", "n", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }))
	if running.Image != "ami-1" || running.PricePerHour != 0.0301 || silent.PricePerHour != 0 {
		t.Errorf("got image %q and price %v", running.Image, running.PricePerHour)
	}
	if !running.Initialized || cpu(running) != 4 || running.Used.Cpu().Value() != 2 || running.DaemonRequests.Cpu().Value() != 1 || len(running.Pods) != 1 {
		t.Errorf("running: %+v", running)
	}
	foreign := one(node("n", func(n *corev1.Node) { n.Spec.ProviderID = "kind://n" }))
	if foreign.Claim != "" || !foreign.Registered || !foreign.Launched {
		t.Errorf("an unmanaged node has %+v", foreign)
	}
}

// Fields of a pod that planning does not read are never in a document, and neither is the last
// applied configuration.
func TestSecretsStayInCluster(t *testing.T) {
	const secret = "hunter2"
	private := func(p *corev1.Pod) {
		p.Annotations = map[string]string{"note": secret, corev1.LastAppliedConfigAnnotation: secret}
		p.Labels = map[string]string{"label": secret}
		p.Spec.ServiceAccountName, p.Spec.Hostname = secret, secret
		p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: secret}}
		p.Spec.Volumes = []corev1.Volume{{Name: secret, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}}
		c := &p.Spec.Containers[0]
		c.Image, c.Args, c.Command = secret, []string{secret}, []string{secret}
		c.Env = []corev1.EnvVar{{Name: secret, Value: secret}}
		c.EnvFrom = []corev1.EnvFromSource{{Prefix: secret}}
		p.Spec.InitContainers = []corev1.Container{*c.DeepCopy()}
		p.Status.Message = secret
	}
	pool := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: secret, "keep": "me"}}}
	class := &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: secret}}}
	workload, fleet := deployment("web", 2), &karpenter.NodeOverlay{ObjectMeta: metav1.ObjectMeta{
		Name: "cheap", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: secret},
	}}
	hidden := pod("hidden", "", private)
	workload.Spec.Template.Spec, workload.Spec.Template.Labels, workload.Spec.Template.Annotations = hidden.Spec, hidden.Labels, hidden.Annotations
	spare := buffer("spare", karpenter.CapacityBufferSpec{ScalableRef: &karpenter.ScalableRef{Kind: "Deployment", Name: "web"}, Replicas: new(int32(1))})
	spare.Annotations = map[string]string{"note": secret}
	view := gated(allGates, workload, spare, fleet, pool, class, node("n", disrupted), claim("c", registered, deleteClaim), pod("waits", "", private), pod("leaves", "n", private), pod("stays", "n", private, owner("DaemonSet")),
		pod("kept", "", private, owner("DaemonSet")))
	text, err := json.Marshal(planning.Batch{Snapshot: view.Snapshot, Pending: view.Pending, Ignored: view.Ignored})
	if err != nil {
		t.Fatal(err)
	}
	if at := strings.Index(string(text), secret); at >= 0 {
		t.Errorf("the document contains a secret: …%s…", text[max(0, at-80):at+len(secret)])
	}
	if len(view.PendingKeys()) != 3 || view.Snapshot.NodePools[0].Annotations["keep"] != "me" {
		t.Errorf("got view %s", text)
	}
}

// SupplyKey changes with every input that could place a pod, and with no other.
func TestSupplyKeyChanges(t *testing.T) {
	pool := func(generation int64) *karpenter.NodePool {
		return &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "u", Generation: generation}}
	}
	first := collectAll(pool(1)).SupplyKey()
	if again := collectAll(pool(1), pod("p", ""), node("n")).SupplyKey(); again != first {
		t.Errorf("pods and nodes change the supply key: %q and %q", first, again)
	}
	if changed := collectAll(pool(2)).SupplyKey(); changed == first {
		t.Error("a changed NodePool does not change the supply key")
	}
}
