package scale_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/integration/suites/scale"
)

// The limits of a large cluster: the watcher's memory, and its CPU usage in cores at
// rest.
const (
	maxResident = 1 << 30 // bytes
	maxCores    = 0.1
)

// trial is a cluster with the duration of its measurement.
type trial struct {
	server          scale.Server
	settle, measure time.Duration
	// cores is the limit of the CPU usage; zero for a small cluster, which has none.
	cores float64
}

// small tests the measurement; large is checked against the limits; busy, in which five
// pods are replaced each second, may use a whole core.
var (
	small = &trial{server: scale.Server{Size: scale.Size{Nodes: 20, Pods: 400, Apps: 10}, Restarts: 20, Heartbeats: 10, Turnover: 5}, settle: 500 * time.Millisecond, measure: time.Second}
	large = &trial{server: scale.Server{Size: scale.Size{Nodes: 5000, Pods: 100_000, Apps: 500}, Restarts: 20, Heartbeats: 17}, settle: 15 * time.Second, measure: time.Minute, cores: maxCores}
	busy  = &trial{server: scale.Server{Size: large.server.Size, Restarts: 20, Heartbeats: 17, Turnover: 5}, settle: 15 * time.Second, measure: time.Minute, cores: 1}
)

func TestWatcherAtScale(t *testing.T) {
	if os.Getenv("JOIST_SCALE") == "full" {
		t.Run("idle", func(t *testing.T) { watching(t, large) })
		t.Run("with pods being replaced", func(t *testing.T) { watching(t, busy) })
		return
	}
	watching(t, small)
}

func watching(t *testing.T, try *trial) {
	url, err := try.server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	process, reported := begin(t, url)
	reported.await(t, "synced")
	<-time.After(try.settle)
	from := cpu(t, process)
	<-time.After(try.measure)
	cores := (cpu(t, process) - from).Seconds() / try.measure.Seconds()
	resident, peak := memory(t, process, "VmRSS"), memory(t, process, "VmHWM")
	size := try.server.Size
	fmt.Printf("scale: %d nodes, %d pods, %d replaced a second: %s; resident %d MiB, at most %d MiB; %.3f cores\n",
		size.Nodes, size.Pods, try.server.Turnover, reported.line("synced"), resident>>20, peak>>20, cores)
	if trouble := reported.line("background error"); trouble != "" {
		t.Error(trouble)
	}
	if reported.line("stored") == "" || reported.line("sent 1 snapshots") == "" {
		t.Error("no snapshot was sent")
	}
	if try.cores > 0 && (peak >= maxResident || cores >= try.cores) {
		t.Errorf("the limits are %d MiB and %.1f cores", maxResident>>20, try.cores)
	}
}

// begin starts the watcher as a separate process with the chart's memory limit.
func begin(t *testing.T, url string) (pid int, reported *speech) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), serverVariable+"="+url, "GOMEMLIMIT=900MiB")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	reported = &speech{told: make(chan struct{}, 1)}
	go reported.listen(bufio.NewScanner(out))
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return command.Process.Pid, reported
}

// speech is the process's output so far.
type speech struct {
	mu    sync.Mutex
	lines []string
	told  chan struct{}
}

func (s *speech) listen(from *bufio.Scanner) {
	for from.Scan() {
		s.mu.Lock()
		s.lines = append(s.lines, from.Text())
		s.mu.Unlock()
		select {
		case s.told <- struct{}{}:
		default:
		}
	}
	close(s.told)
}

// line returns the first line with the prefix, or "".
func (s *speech) line(begins string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.lines {
		if strings.HasPrefix(line, begins) {
			return line
		}
	}
	return ""
}

func (s *speech) await(t *testing.T, begins string) {
	t.Helper()
	limit := time.After(5 * time.Minute)
	for s.line(begins) == "" {
		select {
		case _, open := <-s.told:
			if !open {
				t.Fatalf("the watcher ended: %v", s.lines)
			}
		case <-limit:
			t.Fatalf("the watcher did not print %q: %v", begins, s.lines)
		}
	}
}

// cpu returns a process's CPU time so far.
func cpu(t *testing.T, pid int) time.Duration {
	t.Helper()
	text := read(t, pid, "stat")
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100
}

// memory returns a line of the process's status, in bytes.
func memory(t *testing.T, pid int, name string) int64 {
	t.Helper()
	for line := range strings.Lines(read(t, pid, "status")) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatalf("the operating system does not report %s", name)
	return 0
}

func read(t *testing.T, pid int, file string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		t.Skipf("the operating system does not report the resources of a process: %v", err)
	}
	return string(text)
}
