package scale_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/integration/suites/scale"
	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// The assumed times of calls, which the models answer at once.
const (
	storeCall   = 20 * time.Millisecond // One call to S3.
	messageHop  = 15 * time.Millisecond // From a send until the receiver begins, through SQS or EventBridge, and Lambda.
	clusterCall = 5 * time.Millisecond  // One call to the API server.
	listedClaim = 40 * time.Microsecond // One NodeClaim in a list of the API server.
)

// pathStep is the step of one service on the path from a lone pod to the request for its instance. It ends with a call.
type pathStep struct {
	service, verb, about string
	// work is the time from the beginning of the service's activity until the call, with the assumed times of all calls
	// before it, of which stores are calls to S3 and writes and reads calls to the API server.
	work                  time.Duration
	stores, writes, reads int
}

// lonePodTrial is a complete system in memory with a large cluster.
type lonePodTrial struct {
	*testing.T
	env   *embedded.EmbeddedCluster
	nodes int

	mu sync.Mutex
	// path has the steps of the pod that was added last, and done is how many of them have ended.
	path []*pathStep
	done int
	// current has the service and the calls of the activity that runs now. It began at that time.
	current pathStep
	began   time.Time
}

// observe delays the calls of the path. Inventories of EC2 are dropped, because the model has none of the running instances, and so
// are snapshots, because no node is to be removed.
func (l *lonePodTrial) observe(_ context.Context, call embedded.Call, effect func() error) error {
	if call.Verb == "send" && (strings.Contains(call.About, string(event.InstancesListedType)) || strings.Contains(call.About, string(event.ClusterSnapshotType))) {
		return nil
	}
	l.mu.Lock()
	var delay time.Duration
	if l.done < len(l.path) && l.path[l.done].service == l.current.service {
		step := l.path[l.done]
		if call.Verb == step.verb && strings.Contains(call.About, step.about) {
			step.work, step.stores, step.writes, step.reads = time.Since(l.began), l.current.stores, l.current.writes, l.current.reads
			l.done++
		}
		switch {
		case call.Port == "blob":
			l.current.stores++
			delay = storeCall
		case call.Port == "cluster" && call.Writes && call.Verb != "report":
			l.current.writes++
			delay = clusterCall
		case call.Port == "cluster" && !call.Writes:
			l.current.reads++
			if delay = clusterCall; call.Verb == "list" && call.About == cluster.NodeClaims.Kind {
				delay += time.Duration(l.nodes) * listedClaim
			}
		}
	}
	l.mu.Unlock()
	if delay > 0 {
		<-time.After(delay)
	}
	return effect()
}

// run runs all services until the condition is true.
func (l *lonePodTrial) run(limit time.Duration, until func() bool) {
	l.Helper()
	for end := l.env.Now().Add(limit); !until(); {
		if l.env.Now().After(end) {
			l.Fatalf("nothing happened in %s of simulated time", limit)
		}
		if err := l.env.Advance(l.Context(), l.env.Now()); err != nil {
			l.Fatal(err)
		}
		for _, activity := range l.env.Activities() {
			l.current, l.began = pathStep{service: activity.Actor.Service}, time.Now()
			activity.Run(l.Context())
			if until() {
				return
			}
		}
		if err := l.env.Advance(l.Context(), l.env.NextTime(func(*embedded.Actor) bool { return false })); err != nil {
			l.Fatal(err)
		}
	}
}

// TestLonePod prints where the time goes from a lone pod until the request for its instance.
func TestLonePod(t *testing.T) {
	sizes := []int{20}
	if os.Getenv("JOIST_SCALE") == "full" {
		sizes = []int{1000, 5000, 20000}
	}
	for _, nodes := range sizes {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			total, path := measureLonePod(t, nodes)
			fmt.Printf("scale: a lone pod, %d nodes: %d ms until the request for its instance\n", nodes, total.Milliseconds())
			for _, step := range path {
				fmt.Printf("scale:   %-9s %4d ms, with %d calls to S3 and %d writes and %d reads of the API server\n", step.service, step.work.Milliseconds(), step.stores, step.writes, step.reads)
			}
		})
	}
}

// measureLonePod returns the path of a pod that arrives in a quiet cluster, and its time, which includes the window of the
// watcher.
func measureLonePod(t *testing.T, nodes int) (total time.Duration, path []*pathStep) {
	l := &lonePodTrial{T: t, nodes: nodes}
	var err error
	l.env, err = embedded.New(embedded.Options{Seed: 1, Region: "eu-west-1", Families: []string{"c6i", "c7i", "m6i", "m7i", "r6i", "r7i"}, Parallel: blob.Parallel, Tap: l.observe})
	if err != nil {
		t.Fatal(err)
	}
	size := scale.Size{Nodes: nodes, Pods: 20 * nodes, Apps: max(nodes/10, 1)}
	for _, kind := range []cluster.Kind{cluster.Namespaces, cluster.Nodes, cluster.NodeClaims, cluster.DisruptionBudgets, cluster.Pods} {
		count, shape := size.Objects(kind)
		for i := range count {
			l.env.Kube.SeedObjects(shape(i))
		}
	}
	pool, class := l.poolAndClass()
	if err := l.env.Apply(t.Context(), class, pool); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "lone"} { // After the first pod, every service has the catalogue and the parts.
		quietAt := l.env.Now().Add(15 * time.Second)
		l.run(time.Minute, func() bool { return l.env.Now().After(quietAt) })
		total = l.addPod(name)
	}
	return total, l.path
}

// addPod adds a pod that needs a node of its own, and returns the time until the request for its instance.
func (l *lonePodTrial) addPod(name string) time.Duration {
	l.env.Kube.SeedObjects(lonePod(name))
	began := l.env.Now()
	l.done, l.path = 0, []*pathStep{
		{service: "watcher", verb: "send", about: string(event.PodsUnschedulableType)},
		{service: "planner", verb: "send", about: string(event.PlanMadeType)},
		{service: "lifecycle", verb: "send", about: string(event.LaunchRequestedType)},
		{service: "launcher", verb: "create-fleet"},
	}
	l.run(time.Minute, func() bool { return l.done == len(l.path) })
	total := l.env.Now().Sub(began) + time.Duration(len(l.path)-1)*messageHop
	for _, step := range l.path {
		total += step.work
	}
	return total
}

// poolAndClass returns a NodePool and its EC2NodeClass.
func (l *lonePodTrial) poolAndClass() (*karpenter.NodePool, *karpenter.EC2NodeClass) {
	discovery, family := map[string]string{"karpenter.sh/discovery": l.env.Cluster}, karpenter.AMIFamilyAL2023
	class := &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.Spec = karpenter.EC2NodeClassSpec{
		AMIFamily: &family, Role: l.env.AWS.Role,
		AMISelectorTerms:           []karpenter.AMISelectorTerm{{Alias: "al2023@latest"}},
		SubnetSelectorTerms:        []karpenter.SubnetSelectorTerm{{Tags: discovery}},
		SecurityGroupSelectorTerms: []karpenter.SecurityGroupSelectorTerm{{Tags: discovery}},
	}
	pool := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	pool.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}
	pool.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: karpenter.CapacityTypeLabelKey, Operator: karpenter.NodeSelectorOpIn, Values: []string{karpenter.CapacityTypeSpot, karpenter.CapacityTypeOnDemand}},
	}
	pool.Spec.Disruption = karpenter.Disruption{ConsolidationPolicy: karpenter.ConsolidationPolicyWhenEmpty, ConsolidateAfter: karpenter.DurationOf(time.Hour)}
	return pool, class
}

// lonePod returns a pod that fits on no running node.
func lonePod(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("15")}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "registry.example.com/app:1", Resources: corev1.ResourceRequirements{Requests: requests}}}
	return p
}
