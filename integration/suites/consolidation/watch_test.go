package consolidation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cluster"
)

// watchEvery is the precision of a report's times.
const watchEvery = 100 * time.Millisecond

// record is the observed state; the scene's lock protects it.
type record struct {
	report Report
	// leaving are the pods on disrupted nodes, and evicted counts the ones that are gone.
	leaving map[types.UID]bool
	evicted int
	// apart is set when the limits start to apply; before, the test itself removes pods.
	apart bool
	// busy is the time of the fleet's last change.
	busy time.Duration
	// broken are the violated limits, each once.
	broken map[string]bool
	looks  int
}

// watch takes one sample of the cluster.
func (s *scene) watch() error {
	pods, nodes, claims := cluster.ListCached[*corev1.Pod](s.Cache, cluster.Pods), s.Nodes(), s.Claims()
	perHour := s.perHour()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.Began)
	seen := Sample{At: now, PerHour: perHour, Nodes: len(nodes), Allowed: (len(nodes)*s.size.budget + 99) / 100}
	going := map[string]bool{}
	for _, node := range nodes {
		if testbed.IsDisrupted(node) {
			going[node.Name] = true
			seen.Going++
		}
	}
	s.lookAtPods(pods, going, &seen)
	if last := s.report.last(); seen.Going > 0 || seen.Pending > 0 || len(claims) != len(nodes) || last.PerHour != perHour || last.Nodes != len(nodes) {
		s.busy = now
	}
	if s.apart && seen.Going > seen.Allowed {
		s.broken[fmt.Sprintf("%d of %d nodes were disrupted at once, the budget is %d", seen.Going, seen.Nodes, seen.Allowed)] = true
	}
	if s.looks++; s.looks%3 == 1 {
		s.report.Samples = append(s.report.Samples, seen)
	}
	return nil
}

// lookAtPods counts pods, and checks the PodDisruptionBudgets.
func (s *scene) lookAtPods(pods []*corev1.Pod, going map[string]bool, seen *Sample) {
	available, leaving := map[string]int{}, map[types.UID]bool{}
	for _, pod := range pods {
		if s.apart && going[pod.Spec.NodeName] || s.leaving[pod.UID] {
			leaving[pod.UID] = true
		}
		switch {
		case pod.Spec.NodeName == "":
			seen.Pending++
		case pod.DeletionTimestamp == nil && testbed.IsPodReady(pod):
			seen.Running++
			available[pod.Labels["app"]]++
		}
	}
	for uid := range s.leaving {
		if !leaving[uid] {
			s.evicted++
		}
	}
	s.leaving, seen.Evicted = leaving, s.evicted
	if !s.apart {
		return
	}
	for _, a := range s.size.apps {
		if available[a.name] < a.kept {
			s.broken[fmt.Sprintf("%s had fewer than %d available pods", a.name, a.kept)] = true
		}
	}
}

// perHour returns the price of the instances, in US dollars.
func (s *scene) perHour() float64 {
	sum := 0.0
	for _, r := range s.RunningInstances() {
		sum += s.prices[r.Type]
	}
	return sum
}

// promises returns the violated limits so far.
func (s *scene) promises() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.broken))
}

func (s *scene) latest() Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report.last()
}

// quiet returns the time since the fleet's last change.
func (s *scene) quiet() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.Began) - s.busy
}
