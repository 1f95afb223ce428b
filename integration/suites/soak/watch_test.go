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
	// pods are those ever observed.
	pods map[types.UID]bool
	// warned are interrupted instances that are not drained yet.
	warned map[string]time.Duration
	// orphans is since when objects are orphans, by kind and name.
	orphans map[string]map[string]time.Duration
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
	orphans := s.findOrphans(instances)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.Began)
	sample := ClusterSample{At: now, Nodes: len(nodes), Instances: len(instances)}
	busy := s.followPods(pods, now, &sample)
	for kind, names := range orphans {
		s.followOrphans(kind, names, now)
	}
	for id, at := range s.warned {
		record, known := s.Cloud.Record(id)
		if known && busy[record.PrivateDNS] == 0 {
			delete(s.warned, id)
			if now-at > 2*watchEvery { // else it had no pod
				s.report.Drains = append(s.report.Drains, Latency{At: at, Took: now - at, Of: id})
			}
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
		seen[pod.UID], s.pods[pod.UID] = true, true
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

// findOrphans returns the current orphans by kind: instances that run and have no NodeClaim, and NodeClaims and Nodes whose
// instance does not run.
func (s *run) findOrphans(instances []memcloudRecord) map[string][]string {
	out := map[string][]string{instanceOrphan: nil, claimOrphan: nil, nodeOrphan: nil}
	alive, claimed := map[string]bool{}, map[string]bool{}
	for _, r := range instances {
		alive[r.ID] = true
	}
	for _, claim := range s.Claims() {
		id := testbed.InstanceID(claim.Status.ProviderID)
		claimed[id] = true
		if id != "" && !alive[id] {
			out[claimOrphan] = append(out[claimOrphan], claim.Name)
		}
	}
	for _, node := range s.ManagedNodes() {
		if !alive[testbed.InstanceID(node.Spec.ProviderID)] {
			out[nodeOrphan] = append(out[nodeOrphan], node.Name)
		}
	}
	for id := range alive {
		if !claimed[id] {
			out[instanceOrphan] = append(out[instanceOrphan], id)
		}
	}
	return out
}

// followOrphans records how long objects of a kind are orphans.
func (s *run) followOrphans(kind string, names []string, now time.Duration) {
	since := s.orphans[kind]
	if since == nil {
		since = map[string]time.Duration{}
		s.orphans[kind] = since
	}
	for name, began := range since {
		if !slices.Contains(names, name) {
			s.report.Orphans[kind] = append(s.report.Orphans[kind], Latency{At: began, Took: now - began, Of: name})
			delete(since, name)
		}
	}
	for _, name := range names {
		if _, known := since[name]; !known {
			since[name] = now
		}
	}
}

// readServices reads the metrics of all services. A service that is starting serves none yet.
func (s *run) readServices() {
	for _, service := range s.RunningServices() {
		families, err := s.ReadMetrics(service)
		if err != nil {
			continue
		}
		value := func(name string) float64 {
			if families[name] == nil {
				return 0
			}
			return families[name].Metric[0].GetGauge().GetValue()
		}
		s.mu.Lock()
		s.report.Readings[service] = append(s.report.Readings[service], ServiceReading{
			At: time.Since(s.Began), Life: s.lives[service],
			// The next collection is due when the heap is twice what the last one left.
			Heap: value("go_memstats_next_gc_bytes") / 2, Collected: value("go_memstats_last_gc_time_seconds"),
			Goroutines: value("go_goroutines"), Files: value("process_open_fds"),
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
	r.Binds, r.Drains, r.Samples, r.Orphans = slices.Clone(r.Binds), slices.Clone(r.Drains), slices.Clone(r.Samples), map[string][]Latency{}
	r.Launched, r.Pods, r.Messages = len(s.Cloud.Records()), len(s.pods), s.countMessages()
	r.Faults = s.CountAWSFaults()
	now := time.Since(s.Began)
	for kind, names := range s.orphans {
		r.Orphans[kind] = slices.Clone(s.report.Orphans[kind])
		for name, since := range names {
			r.Orphans[kind] = append(r.Orphans[kind], Latency{At: since, Took: now - since, Of: name})
		}
	}
	for uid, since := range s.pending {
		r.Binds = append(r.Binds, Latency{At: since, Took: now - since, Of: string(uid)})
	}
	return r
}

// countMessages counts the messages of all queues since the beginning.
func (s *run) countMessages() Messages {
	var m Messages
	for _, name := range s.Broker.Queues() {
		q, _ := s.Broker.FindQueue(name)
		stats := q.Stats()
		m.Sent, m.Deleted, m.Dead, m.Expired = m.Sent+stats.Sent, m.Deleted+stats.Deleted, m.Dead+stats.Dead, m.Expired+stats.Expired
	}
	for _, name := range s.Broker.Buses() {
		bus, _ := s.Broker.FindBus(name)
		m.Undelivered += bus.Stats().Undelivered
	}
	return m
}
