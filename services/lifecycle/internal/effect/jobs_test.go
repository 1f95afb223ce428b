package effect_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// slow answers each eviction after a delay, or when the caller gives up.
type slow struct {
	cluster.Client
	takes time.Duration

	mu        sync.Mutex
	order     []string
	now, most int
	gaveUp    int
	refuse    map[string]error
}

func (s *slow) Evict(ctx context.Context, pod cluster.Key, _ types.UID) error {
	s.mu.Lock()
	s.order = append(s.order, pod.Name)
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.now--; s.mu.Unlock() }()
	select {
	case <-time.After(s.takes):
		return s.refuse[pod.Name]
	case <-ctx.Done():
		s.mu.Lock()
		s.gaveUp++
		s.mu.Unlock()
		return fault.E("evicting", fault.Unknown, ctx.Err())
	}
}

func pod(name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }

func evictions(n int) []effect.Job {
	var out []effect.Job
	for i := range n {
		name := fmt.Sprintf("p%03d", i)
		out = append(out, effect.Job{Name: "node " + name, Effects: []effect.Effect{effect.Evict{Pod: pod(name)}}})
	}
	return out
}

func TestExecuteJobs(t *testing.T) {
	t.Run("one job at a time, in order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := &slow{takes: time.Second}
			began := time.Now()
			for _, err := range (effect.Executor{Client: client}).ExecuteJobs(t.Context(), evictions(5)) {
				if err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff([]string{"p000", "p001", "p002", "p003", "p004"}, client.order); diff != "" {
				t.Error(diff)
			}
			if took := time.Since(began); took != 5*time.Second || client.most != 1 {
				t.Errorf("took %s, at most %d at once", took, client.most)
			}
		})
	})
	t.Run("at most the configured number at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := &slow{takes: time.Second}
			began := time.Now()
			(effect.Executor{Client: client, Parallel: 32}).ExecuteJobs(t.Context(), evictions(96))
			if took := time.Since(began); took != 3*time.Second || client.most != 32 || len(client.order) != 96 {
				t.Errorf("%d evictions took %s, at most %d at once", len(client.order), took, client.most)
			}
		})
	})
	t.Run("errors name their jobs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := &slow{takes: time.Second, refuse: map[string]error{"p001": fault.F("evicting", fault.Throttled, "no")}}
			failures := (effect.Executor{Client: client, Parallel: 3}).ExecuteJobs(t.Context(), append(evictions(3), effect.Job{Name: "empty"}))
			if len(failures) != 3 || failures[0] != nil || failures[2] != nil || !fault.Is(failures[1], fault.Throttled) {
				t.Fatalf("%v", failures)
			}
			if got, want := failures[1].Error()[:len("node p001: ")], "node p001: "; got != want {
				t.Errorf("the error begins with %q", got)
			}
		})
	})
	for _, parallel := range []int{1, 3} {
		t.Run(fmt.Sprintf("a panic affects one job only, %d at once", parallel), func(t *testing.T) {
			failures := (effect.Executor{Parallel: parallel}).ForEach(3, func(i int) error {
				if i == 1 {
					panic("test panic")
				}
				return nil
			})
			if failures[0] != nil || failures[2] != nil || !fault.Is(failures[1], fault.Bug) || !strings.Contains(failures[1].Error(), "test panic") {
				t.Errorf("%v", failures)
			}
		})
	}
	t.Run("no job starts after the deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := &slow{takes: time.Minute}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			began := time.Now()
			(effect.Executor{Client: client, Parallel: 4}).ExecuteJobs(ctx, evictions(100))
			if took := time.Since(began); took != 2*time.Second || len(client.order) != 4 || client.gaveUp != 4 {
				t.Errorf("%d evictions started in %s, and %d timed out", len(client.order), took, client.gaveUp)
			}
		})
	})
}

func TestSplitJobs(t *testing.T) {
	update, evict, remove := effect.Update{Object: pod("x")}, effect.Evict{Pod: pod("y")}, effect.DeletePod{Pod: pod("z")}
	rest, removals := effect.Job{Name: "j", Effects: []effect.Effect{evict, update, remove}}.Split()
	if rest.Name != "j" || removals.Name != "j" || len(rest.Effects) != 1 || rest.Effects[0] != effect.Effect(update) {
		t.Errorf("got %+v and %+v", rest, removals)
	}
	if !slices.Equal(removals.Effects, []effect.Effect{evict, remove}) {
		t.Errorf("%+v", removals)
	}
}

// A message is not sent after the time by which its decision must be executed: the replica was paused meanwhile,
// and another may have acted.
func TestLateMessageIsNotSent(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		by   time.Time
		sent int
	}{{"no limit", time.Time{}, 1}, {"in time", noon, 1}, {"late", noon.Add(-time.Second), 0}} {
		t.Run(c.name, func(t *testing.T) {
			queue := memqueue.New(memqueue.Options{Now: func() time.Time { return noon }}).Queue("launcher", memqueue.QueueOptions{})
			d := effect.Executor{Launcher: queue, Now: func() time.Time { return noon }, Maker: event.Maker{Service: "lifecycle", Cluster: event.Cluster{Name: "prod"}}}
			body := event.RebootRequested{InstanceID: "i-0123456789abcdef0", Claim: "c", ClaimUID: "uid", Operation: "op"}
			err := d.ExecuteOne(t.Context(), effect.Send{Body: body, By: c.by})
			messages, failure := queue.Receive(t.Context(), 10, 0, time.Minute)
			if len(messages) != c.sent || (err == nil) != (c.sent == 1) || failure != nil {
				t.Errorf("%d messages are sent (%v, %v), want %d", len(messages), err, failure, c.sent)
			}
		})
	}
}
