package telemetry

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// agent is a CloudWatch agent on a loopback port. It returns each connection's lines once the connection is closed.
func agent(t *testing.T) (address string, lines <-chan string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	heard := make(chan string, 10)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			text, _ := io.ReadAll(connection)
			_ = connection.Close()
			heard <- string(text)
		}
	}()
	return listener.Addr().String(), heard
}

// A service inside the cluster sends its counts to an agent, with a log group; counts before it stops are not lost.
func TestAnAgentGetsWhatIsCounted(t *testing.T) {
	address, lines := agent(t)
	var log strings.Builder
	told, err := New(t.Context(), Options{Service: "lifecycle", Cluster: "prod", Out: &log, CloudWatch: "tcp://" + address})
	if err != nil {
		t.Fatal(err)
	}
	told.RecordMetric(metric.DrainsOverdue, 2, "default")
	told.Flush(t.Context())
	told.Flush(t.Context()) // Nothing was counted, so no connection is made.
	told.RecordMetric(metric.GarbageCollectionStopped, 1)
	if err := told.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{metric.DrainsOverdue.Name, metric.GarbageCollectionStopped.Name} {
		var line struct {
			About struct{ LogGroupName string } `json:"_aws"`
		}
		text := <-lines
		if err := json.Unmarshal([]byte(text), &line); err != nil || line.About.LogGroupName != "/joist/prod/metrics" || !strings.Contains(text, want) {
			t.Errorf("the agent got %s (%v)", text, err)
		}
	}
	if log.Len() > 0 {
		t.Errorf("the log got %s", log.String())
	}
}

// An unreachable agent causes no failure, and is reported.
func TestAnAgentThatIsAway(t *testing.T) {
	told, err := New(t.Context(), Options{Service: "lifecycle", Cluster: "prod", Out: io.Discard, CloudWatch: "tcp://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	told.RecordMetric(metric.DrainsOverdue, 1, "default")
	if err := told.writeCloudWatch(t.Context()); err == nil || !strings.Contains(err.Error(), "CloudWatch agent") {
		t.Error(err)
	}
	if err := told.writeCloudWatch(t.Context()); err != nil {
		t.Errorf("lost counts were sent again: %v", err)
	}
}

// locked is a log that may be read while it is written.
type locked struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *locked) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A long-running process writes each minute until it stops; without a target it writes nothing.
func TestCloudWatchIsToldEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log locked
		told, err := New(t.Context(), Options{Service: "watcher", Cluster: "prod", Out: &log, CloudWatch: ToLog})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		if err := told.Serve(ctx, Ports{}, Probes{}); err != nil {
			t.Fatal(err)
		}
		for minute := range 3 {
			told.RecordMetric(metric.WaitingPods, float64(minute))
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := strings.Count(log.String(), metric.WaitingPods.Name); got != 2*(minute+1) {
				t.Fatalf("after %d minutes the log is\n%s", minute+1, log.String())
			}
		}
		stop()
		synctest.Wait()
		told.RecordMetric(metric.WaitingPods, 1)
		before := log.String()
		time.Sleep(2 * time.Minute)
		if log.String() != before {
			t.Error("counts were sent after the stop")
		}
	})
	silent, _ := quiet(t, 0)
	silent.runCloudWatch(t.Context()) // It returns at once without a target.
}
