package soak

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// run is a test bed under load.
type run struct {
	*testbed.Timeline
	random   *rand.Rand
	revision int
	// failing is when the current failures of AWS end; zero without failures.
	failing time.Time
	mu      sync.Mutex
	observed
}

// TestSoak runs for the time of the variable JOIST_SOAK, with the choices of JOIST_SEED or of a random seed.
func TestSoak(t *testing.T) {
	long, err := time.ParseDuration(cmp.Or(os.Getenv("JOIST_SOAK"), "0s"))
	if err != nil {
		t.Fatalf("JOIST_SOAK is no duration such as 3m or 6h: %v", err)
	}
	if long == 0 {
		t.Skip("make soak sets JOIST_SOAK")
	}
	seed := rand.Uint64N(1_000_000)
	if text := os.Getenv("JOIST_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("JOIST_SEED: %v", err)
		}
	}
	fmt.Fprintf(os.Stderr, "soak: %s, repeat it with SEED=%d\n", long, seed)
	dir, err := testbed.BuildBinaries()
	if err != nil {
		t.Fatal(err)
	}
	s := &run{random: rand.New(rand.NewPCG(seed, 1)), observed: observed{
		report: Measurements{
			Seed: seed, Actions: map[string]int{}, Readings: map[string][]ServiceReading{}, Restarts: map[string]int{}, DeadLetters: map[string]int{},
			Errors:  map[string]int{},
			Orphans: map[string][]Latency{},
		},
		pending: map[types.UID]time.Duration{}, pods: map[types.UID]bool{}, warned: map[string]time.Duration{}, orphans: map[string]map[string]time.Duration{},
		lives: map[string]int{},
	}}
	s.Timeline = &testbed.Timeline{
		TestBed: testbed.New(t, testbed.Options{
			Machines: 100 * time.Millisecond, Notice: s.noticed, Metrics: true, Outages: true, AllowsDenial: testbed.IsRepeatedCall,
			Environ: func(string) []string { return []string{settings.Profiling + "=true"} },
		}),
		Patience: 1, Broken: func() []string { return nil }, Now: s.words,
	}
	t.Cleanup(s.keep)
	s.RunInBackground(watchEvery, s.watch)
	s.StartJoist(dir, false)
	s.RunPhase("the pool", s.pool)
	s.RunPhase("load and faults", func() { s.load(long) })
	s.RunPhase("recovery", s.recover)
	s.RunPhase("to nothing", s.empty)
	s.RunPhase("dead-letter queues", s.replay)
	s.RunPhase("shutdown", s.stop)
}

// words describes the current state.
func (s *run) words() string {
	now, warned := s.latest()
	return fmt.Sprintf("%d pods pending, %d running; %d nodes, %d instances; %d warned instances not drained", now.Pending, now.Running, now.Nodes, now.Instances, warned)
}

func (s *run) pool() {
	s.Apply("testdata/pool.yaml", map[string]string{"EKS_CLUSTER_NAME": testbed.ClusterName, "KARPENTER_NODE_ROLE": s.AWS.Role})
	s.WaitFor(time.Minute, "the NodePool to be ready", func() bool {
		for _, pool := range cluster.ListCached[*karpenter.NodePool](s.Cache, cluster.NodePools) {
			return pool.Status.Conditions.IsTrue(karpenter.ConditionTypeReady)
		}
		return false
	})
	s.deploy()
}

// load does random actions, reads metrics, and prints the state every minute. In the second half it kills no service, so that
// memory that grows slowly shows.
func (s *run) load(long time.Duration) {
	began := time.Now()
	s.mu.Lock()
	s.report.Calm = began.Add(long / 2).Sub(s.Began)
	for _, service := range s.RunningServices() {
		s.report.Readings[service] = nil
	}
	s.mu.Unlock()
	next, read, print, profile := began.Add(20*time.Second), began, began.Add(time.Minute), began.Add(long/2+warmUp)
	s.WaitUntil(long+2*time.Minute, "the end of the load", func() bool {
		now := time.Now()
		s.restartEnded()
		s.endFailures(now)
		if now.After(next) {
			s.act(now.Sub(began) < long/2)
			next = time.Now().Add(s.pause())
		}
		if now.After(read) {
			s.readServices()
			read = now.Add(readEvery)
		}
		if now.After(profile) {
			s.keepProfiles("early")
			profile = began.Add(2 * long)
		}
		if now.After(print) {
			fmt.Fprintf(os.Stderr, "soak: %s of %s: %s\n", now.Sub(began).Round(time.Second), long, s.words())
			print = print.Add(time.Minute)
		}
		return now.Sub(began) > long
	})
	s.endFailures(time.Now().Add(time.Hour))
	s.keepProfiles("late")
	s.mu.Lock()
	s.report.Took = time.Since(s.Began)
	s.mu.Unlock()
}

// keepProfiles writes the heap and goroutine profiles of the services in the cluster: `go tool pprof -diff_base` compares two.
func (s *run) keepProfiles(when string) {
	for _, service := range topology.ClusterServices {
		for _, kind := range []string{"heap", "goroutine"} {
			profile, err := s.ReadProfile("joist-"+service, kind)
			if err != nil {
				s.Logf("%v", err)
				continue
			}
			file := filepath.Join(cmp.Or(os.Getenv("JOIST_SOAK_INTO"), s.TempDir()), service+"-"+kind+"-"+when+".pprof")
			s.RequireNoError(os.WriteFile(file, profile, 0o600))
		}
	}
}

// restartEnded starts services that ended by themselves.
func (s *run) restartEnded() {
	for _, text := range s.StartEnded() {
		s.Logf("%s", text)
		s.count("a service ended by itself")
		name, _, _ := strings.Cut(text, " ")
		s.mu.Lock()
		s.report.Ended = append(s.report.Ended, Exit{At: time.Since(s.Began), Service: name, Text: text})
		s.lives[name]++
		s.mu.Unlock()
	}
}

// recover waits, without faults, until every pod runs and every warned node is drained.
func (s *run) recover() {
	s.WaitFor(pendingMax, "every pod to run, and every warned node to be drained", func() bool {
		s.restartEnded()
		now, warned := s.latest()
		return now.Pending == 0 && warned == 0
	})
}

// empty scales to zero and waits until nothing is left.
func (s *run) empty() {
	for i := range apps {
		s.RequireNoError(s.scale(i, 0))
	}
	s.WaitFor(5*time.Minute, "the pods, nodes, NodeClaims and instances to be removed", func() bool {
		s.restartEnded()
		now, _ := s.latest()
		return now.Pending+now.Running+now.Nodes+now.Instances == 0 && len(s.Claims()) == 0 && s.AllTerminated()
	})
}

// replay moves dead-letter messages back to their queues, and waits until every queue is empty.
func (s *run) replay() {
	for _, name := range s.Broker.Queues() {
		if to, dead := strings.CutSuffix(name, "-dead"); dead {
			if _, ok := s.Broker.FindQueue(to); !ok {
				continue
			}
			s.countDeadLetters(name)
			moved, err := s.Broker.MoveMessages(name, to)
			s.RequireNoError(err)
			s.mu.Lock()
			s.report.Replayed += moved
			s.mu.Unlock()
		}
	}
	// Schedules send a message every few seconds, so the queues are empty one after the other.
	for _, name := range s.Broker.Queues() {
		q, _ := s.Broker.FindQueue(name)
		s.WaitFor(2*time.Minute, name+" to be empty", func() bool {
			visible, hidden, err := q.Depth(s.Context())
			return err == nil && visible+hidden == 0
		})
	}
}

// countDeadLetters logs the messages of a DLQ and counts them by reason. They stay in the queue.
func (s *run) countDeadLetters(name string) {
	q, _ := s.Broker.FindQueue(name)
	messages, err := q.Receive(s.Ctx, 10, 0, 0)
	s.RequireNoError(err)
	for _, m := range messages {
		s.Logf("%s: %v %.500s", name, m.Attributes, m.Body)
		s.mu.Lock()
		s.report.DeadLetters[name+": "+cmp.Or(m.Attributes[host.ReasonAttribute], "received too often")]++
		s.mu.Unlock()
	}
}

// stop stops Joist and counts its errors.
func (s *run) stop() {
	complaints := s.StopAfterOutages()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range complaints {
		line := parseErrorLine(text)
		if line.isExplained(s.Began, s.report.Outages) {
			s.report.Explained++
			continue
		}
		// The last line of a service that ended by itself is in Ended.
		if !slices.ContainsFunc(s.report.Ended, func(e Exit) bool { return strings.Contains(e.Text, line.Msg) }) {
			s.report.Errors[line.kind()]++
			s.Logf("%s", text)
		}
	}
}

// keep fails the test for each violated limit, and writes the measurements, also of a run that ended early.
func (s *run) keep() {
	r := s.result()
	r.Acts = s.Phases()
	r.Took = cmp.Or(r.Took, time.Since(s.Began))
	for _, problem := range r.FindProblems() {
		s.Error(problem)
		s.Logf("%s", problem)
	}
	drawing, err := SVG(r)
	if err != nil {
		s.Error(err)
	}
	s.WriteResults(os.Getenv("JOIST_SOAK_INTO"), "soak", r, drawing, r.Summary())
}
