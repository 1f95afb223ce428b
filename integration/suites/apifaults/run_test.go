package apifaults

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	app       = "apart"
	manifests = testbed.Root + "/services/cli/internal/demo/manifests/"
)

// run is a test bed with what the test did so far and what it saw.
type run struct {
	*testbed.TestBed
	random   *rand.Rand
	replicas int
	// interrupted are the instances that the test interrupted.
	interrupted map[string]bool
	// removing is whether any node may be removed.
	removing bool
	// claims are the UIDs of each NodeClaim's name.
	claims map[string]map[types.UID]bool
	// expected is the number of pods of all rounds.
	expected int
	leases   leaseRecorder
}

func newRun(t *testing.T, seed uint64) *run {
	t.Helper()
	r := &run{
		random: rand.New(rand.NewPCG(seed, 1)), interrupted: map[string]bool{}, claims: map[string]map[types.UID]bool{},
	}
	r.TestBed = testbed.New(t, testbed.Options{ProxySeed: seed, Replicas: 2, Look: func() { r.observe() }, AllowsDenial: testbed.IsRepeatedCall})
	t.Cleanup(r.logState)
	r.RunWithAPIServer(500*time.Millisecond, func() error { return r.leases.record(r.Ctx, r.Kube) })
	return r
}

// prepare creates the NodePool, the EC2NodeClass and a Deployment whose pods need one node each and spread over zones. If
// Joist and kube-scheduler disagreed about the zones, pods would stay pending, or more nodes would be launched.
func (r *run) prepare() {
	r.Apply(manifests+"nodepool.yaml", map[string]string{"EKS_CLUSTER_NAME": testbed.ClusterName, "KARPENTER_NODE_ROLE": r.AWS.Role})
	r.setBudget("0")
	r.useAllZones()
	labels := map[string]string{"app": app}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64),
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
						MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
					}},
					Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
						TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
					}}}},
					Containers: []corev1.Container{{
						Name: "main", Image: "registry.example.com/pause",
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
					}},
				},
			},
		},
	}
	_, err := r.Kube.AppsV1().Deployments("default").Create(r.Context(), deployment, metav1.CreateOptions{})
	r.RequireNoError(err)
	r.WaitUntil(time.Minute, "the NodePool to be ready", func() bool {
		for _, pool := range cluster.ListCached[*karpenter.NodePool](r.Cache, cluster.NodePools) {
			return pool.Status.Conditions.IsTrue(karpenter.ConditionTypeReady)
		}
		return false
	})
}

// setBudget sets how many nodes of the NodePool may be disrupted.
func (r *run) setBudget(nodes string) {
	r.Helper()
	r.patchPool(fmt.Sprintf(`{"spec":{"disruption":{"consolidateAfter":"0s","budgets":[{"nodes":%q}]}}}`, nodes))
}

// useAllZones removes the zone from the NodePool's requirements.
func (r *run) useAllZones() {
	r.Helper()
	r.patchPool(`{"spec":{"template":{"spec":{"requirements":[
		{"key":"karpenter.k8s.aws/instance-family","operator":"In","values":["t4g"]},
		{"key":"karpenter.k8s.aws/instance-cpu","operator":"In","values":["2"]},
		{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot","on-demand"]}]}}}}`)
}

// patchPool changes the NodePool.
func (r *run) patchPool(patch string) {
	r.Helper()
	client, err := dynamic.NewForConfig(r.Plane.Config)
	r.RequireNoError(err)
	pools := client.Resource(schema.GroupVersionResource{Group: karpenter.Group, Version: "v1", Resource: "nodepools"})
	_, err = pools.Patch(r.Context(), "default", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	r.RequireNoError(err)
}

// wait lets time pass, and observes.
func (r *run) wait(d time.Duration) {
	r.Helper()
	end := time.Now().Add(d)
	r.WaitUntil(d+time.Second, "time to pass", func() bool { return time.Now().After(end) })
}

// observe records NodeClaims, and requires that only interrupted nodes are removed before the removal.
func (r *run) observe() {
	r.Helper()
	for _, claim := range r.Claims() {
		if r.claims[claim.Name] == nil {
			r.claims[claim.Name] = map[types.UID]bool{}
			r.Logf("NodeClaim %s", claim.Name)
		}
		r.claims[claim.Name][claim.UID] = true
		if id := testbed.InstanceID(claim.Status.ProviderID); claim.DeletionTimestamp != nil && !r.removing && id != "" && !r.interrupted[id] {
			r.Errorf("NodeClaim %s of instance %s is being deleted, although the instance was not interrupted", claim.Name, id)
		}
	}
	for _, node := range r.Nodes() {
		if id := testbed.InstanceID(node.Spec.ProviderID); testbed.IsDisrupted(node) && !r.removing && !r.interrupted[id] {
			r.Errorf("node %s of instance %s is drained, although the instance was not interrupted", node.Name, id)
		}
	}
}

// isSettled reports whether each pod runs on its own node, each node has one pod, one NodeClaim and one instance, and all
// interrupted instances have ended, because a notice may be late.
func (r *run) isSettled() bool {
	for id := range r.interrupted {
		if record, _ := r.Cloud.Record(id); record.Ended.IsZero() {
			return false
		}
	}
	alive := r.RunningInstances()
	if len(alive) != r.replicas || len(r.Claims()) != r.replicas || len(r.ManagedNodes()) != r.replicas {
		return false
	}
	for _, claim := range r.Claims() {
		record, _ := r.Cloud.Record(testbed.InstanceID(claim.Status.ProviderID))
		if !claim.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) || record.Tags[karpenter.NodeClaimTagKey] != claim.Name {
			return false
		}
	}
	return r.CountRunningPods(app) == r.replicas && len(r.Pods(app)) == r.replicas
}

// requireZones requires that the pods run in this many zones.
func (r *run) requireZones(want int) {
	r.Helper()
	zones := map[string]int{}
	for _, p := range r.Pods(app) {
		for _, n := range r.Nodes() {
			if n.Name == p.Spec.NodeName {
				zones[n.Labels[corev1.LabelTopologyZone]]++
			}
		}
	}
	if r.Logf("pods by zone: %v", zones); len(zones) != want {
		r.Errorf("the pods run in the zones %v, want %d zones", zones, want)
	}
}

// requireFleet requires that no NodeClaim existed or was launched twice, and that no pod got two nodes.
func (r *run) requireFleet() {
	r.Helper()
	r.RequireNoOrphans()
	for _, name := range slices.Sorted(maps.Keys(r.claims)) {
		if n := len(r.claims[name]); n > 1 {
			r.Errorf("NodeClaim %s was created %d times", name, n)
		}
	}
	launched := map[string][]string{}
	for _, record := range r.Cloud.Records() {
		name := record.Tags[karpenter.NodeClaimTagKey]
		launched[name] = append(launched[name], record.ID)
	}
	for name, ids := range launched {
		if len(ids) > 1 && name != "" {
			r.Errorf("NodeClaim %s has the instances %v", name, ids)
		}
	}
	r.expected += r.replicas
	if want, got := r.expected+len(r.interrupted), len(r.Cloud.Records()); got != want {
		r.Errorf("%d instances were launched, want %d: one for each pod and one for each interruption", got, want)
	}
}

// logState logs the objects and instances, for a failure.
func (r *run) logState() {
	if !r.Failed() {
		return
	}
	for _, c := range r.Claims() {
		var conditions []string
		for _, condition := range c.Status.Conditions {
			conditions = append(conditions, condition.Type+"="+string(condition.Status))
		}
		r.Logf("NodeClaim %s %s, deleted %v, finalizers %v, %v", c.Name, testbed.InstanceID(c.Status.ProviderID), c.DeletionTimestamp, c.Finalizers, conditions)
	}
	for _, n := range r.Nodes() {
		r.Logf("Node %s %s, deleted %v, ready %v, taints %v", n.Name, testbed.InstanceID(n.Spec.ProviderID), n.DeletionTimestamp, testbed.IsNodeReady(n), n.Spec.Taints)
	}
	for _, record := range r.Cloud.Records() {
		r.Logf("instance %s %v of %s, ended %v", record.ID, record.State, record.Tags[karpenter.NodeClaimTagKey], record.Ended)
	}
	for _, p := range r.Pods(app) {
		r.Logf("pod %s on %q, ready %v, deleted %v, %v", p.Name, p.Spec.NodeName, testbed.IsPodReady(p), p.DeletionTimestamp, p.Status.NominatedNodeName)
	}
}
