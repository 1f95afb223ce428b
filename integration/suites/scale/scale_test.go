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

// trial is a service in a cluster of a size, with the duration of its measurement.
type trial struct {
	service         string
	server          *scale.Server
	settle, measure time.Duration
	// resident is the limit of the largest resident set in bytes, and cores that of the CPU
	// usage. They are zero for a small cluster, which has none.
	resident int64
	cores    float64
}

// busyCluster returns a cluster with 20 pods per node, of which twenty change and five are
// replaced each second. Each node sends a heartbeat every five minutes.
func busyCluster(nodes int) *scale.Server {
	size := scale.Size{Nodes: nodes, Pods: 20 * nodes, Apps: nodes / 10}
	return &scale.Server{Size: size, Restarts: 20, Heartbeats: 1 + nodes/300, Turnover: 5}
}

func quietCluster(nodes int) *scale.Server {
	server := busyCluster(nodes)
	server.Turnover = 0
	return server
}

// TestServicesAtScale measures what the sizes in the chart's README are based on.
func TestServicesAtScale(t *testing.T) {
	if os.Getenv("JOIST_SCALE") != "full" {
		for _, service := range []string{"watcher", "lifecycle"} {
			t.Run(service, func(t *testing.T) {
				measureService(t, trial{service: service, server: busyCluster(20), settle: 500 * time.Millisecond, measure: time.Second})
			})
		}
		return
	}
	for _, try := range []trial{
		{service: "watcher", server: quietCluster(20000), resident: 2 << 30, cores: 0.4},
		{service: "watcher", server: quietCluster(5000), resident: 1 << 30, cores: 0.1},
		{service: "watcher", server: busyCluster(5000), resident: 1 << 30, cores: 1},
		{service: "watcher", server: busyCluster(500), resident: 192 << 20, cores: 1},
		{service: "lifecycle", server: quietCluster(20000), resident: 2 << 30, cores: 0.2},
		{service: "lifecycle", server: quietCluster(5000), resident: 1 << 30, cores: 0.05},
		{service: "lifecycle", server: busyCluster(5000), resident: 1 << 30, cores: 1},
		{service: "lifecycle", server: busyCluster(500), resident: 192 << 20, cores: 1},
	} {
		t.Run(fmt.Sprintf("%s/%d nodes/%d pods replaced a second", try.service, try.server.Size.Nodes, try.server.Turnover), func(t *testing.T) {
			try.settle, try.measure = 15*time.Second, 30*time.Second
			measureService(t, try)
		})
	}
}

func measureService(t *testing.T, try trial) {
	url, err := try.server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	process, reported := begin(t, try.service, url, try.resident)
	reported.await(t, "synced")
	<-time.After(try.settle)
	from := cpu(t, process)
	<-time.After(try.measure)
	cores := (cpu(t, process) - from).Seconds() / try.measure.Seconds()
	resident, peak := memory(t, process, "VmRSS"), memory(t, process, "VmHWM")
	size := try.server.Size
	fmt.Printf("scale: %s, %d nodes, %d pods, %d replaced a second: %s; resident %d MiB, at most %d MiB; %.3f cores\n",
		try.service, size.Nodes, size.Pods, try.server.Turnover, reported.line("synced"), resident>>20, peak>>20, cores)
	if trouble := reported.line("background error"); trouble != "" {
		t.Error(trouble)
	}
	if try.service == "watcher" && (reported.line("stored") == "" || reported.line("sent 1 snapshots") == "") {
		t.Error("no snapshot was sent")
	}
	if try.cores > 0 && (peak >= try.resident || cores >= try.cores) {
		t.Errorf("the limits are %d MiB and %.1f cores", try.resident>>20, try.cores)
	}
}

// begin starts a service as a separate process. Its soft memory limit is the chart's, nine tenths of the container's.
func begin(t *testing.T, service, url string, resident int64) (pid int, reported *speech) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), serverVariable+"="+url, serviceVariable+"="+service, fmt.Sprintf("GOMEMLIMIT=%d", max(resident, 1<<30)/10*9))
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
				t.Fatalf("the service ended: %v", s.lines)
			}
		case <-limit:
			t.Fatalf("the service did not print %q: %v", begins, s.lines)
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
