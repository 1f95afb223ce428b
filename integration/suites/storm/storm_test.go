package storm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// scene is a testbed during a storm.
type scene struct {
	*testbed.Timeline
	size size
	mu   sync.Mutex
	record
}

// sizes are 40 nodes, which run for every change of Joist, and 500 (JOIST_STORM=1).
var (
	small = size{apps: crowd(6, 3, 40), warned: 30, seconds: 10, patience: 1, noticeMax: 20 * time.Second}
	full  = size{apps: crowd(44, 5, 100), warned: 30, seconds: 60, anyNode: true, patience: 4, noticeMax: 5 * time.Second}
)

func TestManyInterruptions(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane, seven services and hundreds of pods")
	}
	storm := small
	if os.Getenv("JOIST_STORM") != "" {
		storm = full
	}
	play(t, storm)
}

func play(t *testing.T, storm size) {
	dir, err := testbed.BuildBinaries()
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{size: storm, record: record{
		notices: map[string]*Notice{}, nodes: map[string]string{}, calm: map[types.UID]time.Duration{}, broken: map[string]bool{}, claims: map[string]bool{},
	}}
	s.Timeline = &testbed.Timeline{
		TestBed:  testbed.New(t, testbed.Options{Machines: 100 * time.Millisecond, Notice: s.noticed}),
		Patience: storm.patience, Broken: s.promises, Now: s.words,
	}
	t.Cleanup(s.keep)
	s.RunInBackground(watchEvery, s.watch)
	s.StartJoist(dir, false)
	s.RunPhase("the pool", s.pool)
	s.RunPhase("up", s.up)
	s.RunPhase("storm", s.storm)
	s.RunPhase("drained", s.drained)
	s.RunPhase("down", s.down)
	s.RunPhase("shutdown", s.Stop)
	s.judge()
}

// words describes the current state.
func (s *scene) words() string {
	now := s.latest()
	return fmt.Sprintf("%d pods without a node, %d running; %d nodes, %d of them being removed; %d instances", now.Pending, now.Running, now.Nodes, now.Going, now.Instances)
}

// await waits until a sample meets the condition.
func (s *scene) await(limit time.Duration, what string, holds func(Sample) bool) {
	s.Helper()
	s.WaitFor(limit, what, func() bool { return holds(s.latest()) })
}

func (s *scene) pool() {
	s.Apply("testdata/pool.yaml", map[string]string{"EKS_CLUSTER_NAME": testbed.ClusterName, "KARPENTER_NODE_ROLE": s.AWS.Role})
	s.await(time.Minute, "the NodePool to be ready", func(Sample) bool {
		for _, pool := range cluster.ListCached[*karpenter.NodePool](s.Cache, cluster.NodePools) {
			return pool.Status.Conditions.IsTrue(karpenter.ConditionTypeReady)
		}
		return false
	})
}

func (s *scene) up() {
	s.deploy()
	s.await(2*time.Minute, "every pod to run", s.whole)
	s.await(time.Minute, "every NodeClaim to be initialized", func(Sample) bool { return s.initialized() })
	if nodes, enough := len(s.Nodes()), s.size.pods()/podsOfANode; nodes > enough+enough/10 {
		s.Errorf("%d pods got %d nodes, although %d are enough", s.size.pods(), nodes, enough)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stormy, s.calmClaims = true, len(s.claims)
}

// whole reports whether exactly the wanted number of pods runs.
func (s *scene) whole(now Sample) bool { return now.Running == s.size.pods() && now.Pending == 0 }

func (s *scene) initialized() bool {
	return !slices.ContainsFunc(s.Claims(), func(c *karpenter.NodeClaim) bool {
		return c.DeletionTimestamp == nil && !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized)
	})
}

// storm interrupts the victims, one after the other.
func (s *scene) storm() {
	victims := s.victims()
	pause := time.Duration(s.size.seconds) * time.Second / time.Duration(len(victims))
	for i, id := range victims {
		s.protect(id)
		if !s.Cloud.InterruptSpot(id) {
			s.Fatalf("%s is not a spot instance that can be interrupted", id)
		}
		due := time.Now().Add(pause)
		s.await(pause+time.Minute, fmt.Sprintf("the time of warning %d", i+1), func(Sample) bool { return !time.Now().Before(due) })
	}
	s.Logf("%d instances got a warning", len(victims))
}

// victims draws from the spot instances, the same in every run.
func (s *scene) victims() []string {
	spared := map[string]bool{}
	for _, pod := range cluster.ListCached[*corev1.Pod](s.Cache, cluster.Pods) {
		if pod.Annotations[karpenter.DoNotDisruptAnnotationKey] == "true" && !s.size.anyNode {
			spared[pod.Spec.NodeName] = true
		}
	}
	alive := s.RunningInstances()
	var spot []string
	for _, r := range alive {
		if r.CapacityType == cloud.Spot && !spared[r.PrivateDNS] {
			spot = append(spot, r.ID)
		}
	}
	slices.Sort(spot)
	wanted := max(1, len(alive)*s.size.warned/100)
	if len(spot) < wanted {
		s.Fatalf("of %d instances %d are spot instances that can be interrupted, fewer than the required %d", len(alive), len(spot), wanted)
	}
	dice := rand.New(rand.NewPCG(1, 2))
	dice.Shuffle(len(spot), func(i, j int) { spot[i], spot[j] = spot[j], spot[i] })
	return spot[:wanted]
}

// protect records until when protected pods must stay: on an interrupted node until their
// grace period before its deadline, elsewhere always.
func (s *scene) protect(victim string) {
	r, _ := s.Cloud.Record(victim)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[victim] = r.PrivateDNS
	for _, pod := range cluster.ListCached[*corev1.Pod](s.Cache, cluster.Pods) {
		if pod.Annotations[karpenter.DoNotDisruptAnnotationKey] != "true" || pod.DeletionTimestamp != nil {
			continue
		}
		if _, known := s.calm[pod.UID]; !known {
			s.calm[pod.UID] = 0
		}
		if pod.Spec.NodeName == r.PrivateDNS {
			const spotNotice, slack = 2 * time.Minute, 5 * time.Second
			s.calm[pod.UID] = time.Since(s.Began) + spotNotice - time.Duration(*pod.Spec.TerminationGracePeriodSeconds)*time.Second - slack
		}
	}
}

// drained waits until every interrupted instance is terminated, and every pod runs
// elsewhere.
func (s *scene) drained() {
	s.await(150*time.Second, "the interrupted instances to be terminated, and every pod to run again", func(now Sample) bool {
		for _, n := range s.result().Notices {
			if n.Gone == 0 {
				return false
			}
		}
		return s.whole(now) && s.initialized() && now.Going == 0
	})
	s.mu.Lock()
	s.stormy = false
	s.mu.Unlock()
}

func (s *scene) down() {
	client, err := dynamic.NewForConfig(s.Plane.Config)
	s.RequireNoError(err)
	pools := client.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"})
	_, err = pools.Patch(s.Context(), "default", types.MergePatchType, []byte(`{"spec":{"disruption":{"consolidateAfter":"5s"}}}`), metav1.PatchOptions{})
	s.RequireNoError(err)
	s.empty()
	s.await(3*time.Minute, "the pods, nodes, NodeClaims and instances to be removed", func(now Sample) bool {
		return now.Pending+now.Running+now.Nodes+now.Instances == 0 && len(s.Claims()) == 0 && s.AllTerminated()
	})
	s.await(time.Minute, "the launch templates to be deleted", func(Sample) bool {
		templates, err := s.Cloud.Templates(s.Context(), nil)
		s.RequireNoError(err)
		return len(templates) == 0
	})
}

// judge compares the times with their limits.
func (s *scene) judge() {
	r := s.result()
	if cordons := r.Cordons(); len(cordons) != len(r.Notices) || Percentile(cordons, 99) >= s.size.noticeMax {
		s.Errorf("%d of %d interrupted nodes were tainted, 99 of 100 within %s; want all, within %s", len(cordons), len(r.Notices), Percentile(cordons, 99), s.size.noticeMax)
	}
	for _, n := range r.Notices {
		if n.Drained == 0 || n.Drained > n.Gone {
			s.Errorf("%s got a warning at %.1f s and was terminated at %.1f s with pods on it (drained at %.1f s)", n.Instance, n.Warned.Seconds(), n.Gone.Seconds(), n.Drained.Seconds())
		}
	}
}

// keep writes the measurements, also of a failed run.
func (s *scene) keep() {
	r := s.result()
	drawing, err := SVG(r)
	if err != nil {
		s.Error(err)
	}
	s.WriteResults(os.Getenv("JOIST_STORM_INTO"), "storm", r, drawing, r.Summary())
}
