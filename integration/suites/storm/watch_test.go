package storm

import (
	"encoding/json"
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
const watchEvery = 50 * time.Millisecond

// record is the observed state; the scene's lock protects it.
type record struct {
	report  Report
	notices map[string]*Notice
	// nodes are the node names of the interrupted instances.
	nodes map[string]string
	// calm are the protected pods, with the times from which they may be evicted: zero for
	// those whose node is not interrupted.
	calm map[types.UID]time.Duration
	// stormy is set between the scale-up and the scale-down.
	stormy bool
	// claims are the names of all claims so far, and calmClaims their number when the
	// storm began.
	claims     map[string]bool
	calmClaims int
	// broken are the violated limits, each once.
	broken map[string]bool
	looks  int
}

// noticed observes every event of EC2 before the bus does.
func (s *scene) noticed(raw []byte) {
	var e struct {
		Type   string `json:"detail-type"`
		Detail struct {
			Instance string `json:"instance-id"`
		} `json:"detail"`
	}
	if json.Unmarshal(raw, &e) != nil || e.Type != "EC2 Spot Instance Interruption Warning" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notices[e.Detail.Instance] = &Notice{Instance: e.Detail.Instance, Warned: time.Since(s.Began)}
}

// watch takes one sample of the cluster.
func (s *scene) watch() error {
	records := s.Cloud.Records()
	pods, nodes := cluster.ListCached[*corev1.Pod](s.Cache, cluster.Pods), s.Nodes()
	claims := s.Claims()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, claim := range claims {
		s.claims[claim.Name] = true
	}
	now := time.Since(s.Began)
	seen := Sample{At: now, Nodes: len(nodes)}
	tainted := map[string]bool{}
	for _, node := range nodes {
		if testbed.IsDisrupted(node) {
			tainted[node.Name] = true
			seen.Going++
		}
	}
	ended := map[string]bool{}
	for _, r := range records {
		ended[r.ID] = !r.Ended.IsZero()
		if !ended[r.ID] {
			seen.Instances++
		}
	}
	left, going := s.lookAtPods(pods, &seen, now)
	for _, n := range s.notices {
		n.follow(now, s.nodes[n.Instance], tainted, left, going, ended[n.Instance])
		n.Ahead = n.Ahead || n.Evicting == 0 && len(s.claims)-s.calmClaims >= s.rank(n)
	}
	// Every fifth sample is kept.
	if s.looks++; s.looks%5 == 1 {
		s.report.Samples = append(s.report.Samples, seen)
	}
	return nil
}

// rank returns how many notices had arrived, including this one.
func (s *scene) rank(n *Notice) int {
	count := 0
	for _, other := range s.notices {
		if other.Warned <= n.Warned {
			count++
		}
	}
	return count
}

// follow updates the times of a notice.
func (n *Notice) follow(now time.Duration, node string, tainted map[string]bool, left, going map[string]int, ended bool) {
	reach := func(at *time.Duration, is bool) {
		if *at == 0 && is {
			*at = now
		}
	}
	reach(&n.Cordoned, tainted[node])
	reach(&n.Evicting, going[node] > 0 || left[node] == 0)
	reach(&n.Drained, left[node] == 0)
	reach(&n.Gone, ended)
}

// lookAtPods counts pods in total and per node, and checks the limits.
func (s *scene) lookAtPods(pods []*corev1.Pod, seen *Sample, now time.Duration) (left, going map[string]int) {
	left, going = map[string]int{}, map[string]int{}
	available, calm := map[string]int{}, map[types.UID]bool{}
	for _, pod := range pods {
		switch {
		case pod.Spec.NodeName == "":
			seen.Pending++
		case pod.DeletionTimestamp != nil:
			left[pod.Spec.NodeName]++
			going[pod.Spec.NodeName]++
		default:
			left[pod.Spec.NodeName]++
			if testbed.IsPodReady(pod) {
				seen.Running++
				available[pod.Labels["app"]]++
				calm[pod.UID] = true
			}
		}
	}
	if !s.stormy {
		return left, going
	}
	for _, a := range s.size.apps {
		if available[a.name] < a.kept {
			s.broken[fmt.Sprintf("%s had fewer than %d available pods", a.name, a.kept)] = true
		}
	}
	for uid, until := range s.calm {
		if !calm[uid] && (until == 0 || now < until) {
			s.broken[fmt.Sprintf("protected pod %s was evicted at %.1f s, which was allowed from %.1f s", uid, now.Seconds(), until.Seconds())] = true
		}
	}
	return left, going
}

// promises returns the violated limits so far.
func (s *scene) promises() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.broken))
}

// latest returns the last sample that was kept.
func (s *scene) latest() Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.report.Samples) == 0 {
		return Sample{}
	}
	return s.report.Samples[len(s.report.Samples)-1]
}

// result returns the report with its notices in order.
func (s *scene) result() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.report
	r.Pods, r.Acts = s.size.pods(), s.Phases()
	r.Notices = nil
	for _, id := range slices.Sorted(maps.Keys(s.notices)) {
		r.Notices = append(r.Notices, *s.notices[id])
	}
	slices.SortStableFunc(r.Notices, func(a, b Notice) int { return int(a.Warned - b.Warned) })
	return r
}
