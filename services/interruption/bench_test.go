package interruption

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/telemetry"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// nullPorts do nothing, so that the benchmarks measure only the service.
type nullPorts struct{ queue.Queue }

func (nullPorts) Send(context.Context, ...queue.Outgoing) error { return nil }
func (nullPorts) Delete(context.Context, ...string) error       { return nil }

func (nullPorts) DescribeInstances(_ context.Context, f cloud.InstanceFilter) ([]cloud.Instance, error) {
	var out []cloud.Instance
	for _, id := range f.IDs {
		i := cloud.Instance{ID: id, Type: "m6i.large", Zone: "us-west-2a", CapacityType: "spot", State: cloud.Running, Tags: map[string]string{"Name": "db"}}
		if id != foreignID {
			i.Tags = map[string]string{"kubernetes.io/cluster/web": "owned", "karpenter.sh/nodepool": "default"}
		}
		out = append(out, i)
	}
	return out, nil
}

// warningBody returns a spot warning in the form of AWS.
func warningBody(id string, at time.Time) []byte {
	return fmt.Appendf(nil, `{"version":"0","id":"11111111-2222-3333-4444-555555555555","detail-type":%q,"source":"aws.ec2",`+
		`"account":"123456789012","time":%q,"region":"us-west-2","resources":["arn:aws:ec2:us-west-2a:instance/%s"],`+
		`"detail":{"instance-id":%q,"instance-action":"terminate"}}`, spotType, at.UTC().Format(time.RFC3339), id, id)
}

// newWorker returns the service in a host worker with the log function.
func newWorker(t testing.TB, log func(host.LogLine)) host.Worker {
	t.Helper()
	s := &Service{EC2: nullPorts{}, Bus: nullPorts{}, Cluster: web, Now: time.Now}
	return host.Worker{Service: "interruption", Queue: nullPorts{}, Dead: nullPorts{}, Handle: s.Handle, HandleBatch: s.Batch, Now: time.Now, Log: log}
}

func newLineLogger(t testing.TB) func(host.LogLine) {
	t.Helper()
	output, err := telemetry.New(t.Context(), telemetry.Options{Service: "interruption", Version: "v", Cluster: "web", Out: io.Discard, Level: slog.LevelInfo})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = output.Close() })
	return output.LogMessage
}

var messageCases = []struct {
	name string
	body func(at time.Time) []byte
	want host.Action
	// alone and allocs limit the allocations of a message, alone and in a batch of ten.
	alone, allocs float64
}{
	{"owned", func(at time.Time) []byte { return warningBody(ownedID, at) }, host.Delete, 25, 16},
	{"foreign", func(at time.Time) []byte { return warningBody(foreignID, at) }, host.Delete, 19, 10},
	{"poison", func(at time.Time) []byte { return warningBody("i-*", at) }, host.MoveToDLQ, 33, 19},
}

// cpuTime returns the CPU time of the process.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkMessage measures a message from its delivery to its log line.
func BenchmarkMessage(b *testing.B) {
	for name, log := range map[string]func(host.LogLine){"without log": nil, "with log": newLineLogger(b)} {
		for _, c := range messageCases {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				w := newWorker(b, log)
				m := queue.Message{ID: "m", Body: c.body(time.Now()), Receipt: "r", Receives: 1, Sent: time.Now()}
				b.ReportAllocs()
				began := cpuTime()
				for b.Loop() {
					if v := w.ProcessMessage(b.Context(), m).Disposition; v.Action != c.want {
						b.Fatal(v)
					}
				}
				b.ReportMetric(float64(cpuTime()-began)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// BenchmarkBatch measures one message of a batch of ten.
func BenchmarkBatch(b *testing.B) {
	for name, log := range map[string]func(host.LogLine){"without log": nil, "with log": newLineLogger(b)} {
		for _, c := range messageCases {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				w, messages := newWorkerWithMessages(b, log, c.body)
				b.ReportAllocs()
				began := cpuTime()
				for b.Loop() {
					if lines := w.ProcessMessages(b.Context(), messages); lines[9].Disposition.Action != c.want {
						b.Fatal(lines[9].Disposition)
					}
				}
				b.ReportMetric(float64(cpuTime()-began)/float64(b.N*len(messages)), "cpu-ns/message")
			})
		}
	}
}

// newWorkerWithMessages returns a worker and ten messages.
func newWorkerWithMessages(t testing.TB, log func(host.LogLine), body func(at time.Time) []byte) (host.Worker, []queue.Message) {
	t.Helper()
	w := newWorker(t, log)
	messages := make([]queue.Message, queue.MaxBatch)
	for i := range messages {
		id := strconv.Itoa(i)
		messages[i] = queue.Message{ID: id, Body: body(time.Now()), Receipt: id, Receives: 1, Sent: time.Now()}
	}
	return w, messages
}
