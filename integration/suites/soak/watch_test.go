package soak

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cluster"
)

const (
	// watchEvery is the precision of times, sampleEvery is how often a sample is kept, and readEvery how often metrics
	// are read.
	watchEvery  = 100 * time.Millisecond
	sampleEvery = 2 * time.Second
	readEvery   = 5 * time.Second
)

// observed is the observed state; the run's lock protects it.
type observed struct {
	report  Measurements
	pending map[types.UID]time.Duration
	// warned are interrupted instances that are not drained yet, and orphans instances without a NodeClaim.
	warned, orphans map[string]time.Duration
	// lives counts the processes of each service.
	lives map[string]int
}

// noticed observes every event of EC2 before the bus does.
func (s *run) noticed(raw []byte) {
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
	s.warned[e.Detail.Instance] = time.Since(s.Began)
}

// watch takes one sample of the cluster.
func (s *run) watch() error {
	pods, nodes, instances := cluster.ListCached[*corev1.Pod](s.Cache, cluster.Pods), s.Nodes(), s.RunningInstances()
	claimed := map[string]bool{}
	for _, claim := range s.Claims() {
		claimed[testbed.InstanceID(claim.Status.ProviderID)] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.Began)
	sample := ClusterSample{At: now, Nodes: len(nodes), Instances: len(instances)}
	busy := s.followPods(pods, now, &sample)
	s.followOrphans(instances, claimed, now)
	for id, at := range s.warned {
		record, known := s.Cloud.Record(id)
		if known && busy[record.PrivateDNS] == 0 {
			s.report.Drains = append(s.report.Drains, Latency{At: at, Took: now - at, Of: id})
			delete(s.warned, id)
		}
	}
	if n := len(s.report.Samples); n == 0 || now-s.report.Samples[n-1].At >= sampleEvery {
		s.report.Samples = append(s.report.Samples, sample)
	}
	return nil
}

// followPods counts pods, records how long they were pending, and returns how many are on each node.
func (s *run) followPods(pods []*corev1.Pod, now time.Duration, sample *ClusterSample) map[string]int {
	busy, seen := map[string]int{}, map[types.UID]bool{}
	for _, pod := range pods {
		seen[pod.UID] = true
		since, waits := s.pending[pod.UID]
		switch {
		case pod.Spec.NodeName != "":
			busy[pod.Spec.NodeName]++
			if waits {
				s.report.Binds = append(s.report.Binds, Latency{At: since, Took: now - since, Of: pod.Name})
				delete(s.pending, pod.UID)
			}
			if pod.DeletionTimestamp == nil && testbed.IsPodReady(pod) {
				sample.Running++
			}
		case pod.DeletionTimestamp == nil:
			sample.Pending++
			if !waits {
				s.pending[pod.UID] = now
			}
		}
	}
	for uid, since := range s.pending {
		if !seen[uid] {
			delete(s.pending, uid) // It was scaled down while it was pending.
			if now-since > pendingMax {
				s.report.Binds = append(s.report.Binds, Latency{At: since, Took: now - since, Of: string(uid)})
			}
		}
	}
	return busy
}

// followOrphans records how long instances have no NodeClaim.
func (s *run) followOrphans(instances []memcloudRecord, claimed map[string]bool, now time.Duration) {
	alive := map[string]bool{}
	for _, r := range instances {
		alive[r.ID] = !claimed[r.ID]
		if claimed[r.ID] {
			continue
		}
		if _, known := s.orphans[r.ID]; !known {
			s.orphans[r.ID] = now
		}
		s.report.Orphan = max(s.report.Orphan, now-s.orphans[r.ID])
	}
	for id := range s.orphans {
		if !alive[id] {
			delete(s.orphans, id)
		}
	}
}

// readServices reads the metrics of all services. A service that is starting serves none yet.
func (s *run) readServices() {
	for _, service := range s.RunningServices() {
		families, err := s.ReadMetrics(service)
		if err != nil || families["go_memstats_next_gc_bytes"] == nil || families["go_goroutines"] == nil {
			continue
		}
		s.mu.Lock()
		s.report.Readings[service] = append(s.report.Readings[service], ServiceReading{
			At: time.Since(s.Began), Life: s.lives[service],
			// The next collection is due when the heap is twice what the last one left.
			Heap:       families["go_memstats_next_gc_bytes"].Metric[0].Gauge.GetValue() / 2,
			Goroutines: families["go_goroutines"].Metric[0].Gauge.GetValue(),
		})
		s.mu.Unlock()
	}
}

// count counts an action.
func (s *run) count(action string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Actions[action]++
}

// latest returns the last sample, and how many warned instances are not drained.
func (s *run) latest() (ClusterSample, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.report.Samples) == 0 {
		return ClusterSample{}, 0
	}
	return s.report.Samples[len(s.report.Samples)-1], len(s.warned)
}

// result returns a copy of the report.
func (s *run) result() Measurements {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.report
	r.Binds, r.Drains, r.Samples = slices.Clone(r.Binds), slices.Clone(r.Drains), slices.Clone(r.Samples)
	r.Launched = len(s.Cloud.Records())
	for uid, since := range s.pending {
		r.Binds = append(r.Binds, Latency{At: since, Took: time.Since(s.Began) - since, Of: string(uid)})
	}
	return r
}
