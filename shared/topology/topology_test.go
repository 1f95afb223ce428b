package topology_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue/eventpattern"
	"github.com/joist-autoscaler/joist/shared/topology"
)

var update = flag.Bool("update", false, "update the golden files")

func of(t *testing.T, c topology.Cluster) topology.Plan {
	t.Helper()
	p, err := topology.NewPlan(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGolden(t *testing.T) {
	got, err := json.MarshalIndent(of(t, topology.Cluster{Name: "prod"}), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "prod.json")
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(got)+"\n" {
		t.Errorf("the plan differs from %s; check the difference, then run go test -update:\n%s", file, got)
	}
}

// Exactly the producers of each command may send to its queue.
func TestSendersAreProducers(t *testing.T) {
	p := of(t, topology.Cluster{Name: "prod"})
	for service, want := range map[string][]string{
		"planner": {"watcher"}, "disruption": {"watcher"}, "catalog": {"scheduler", "watcher"},
		"launcher": {"lifecycle", "scheduler"}, "interruption": {"eventbridge", "scheduler"}, "lifecycle": {"eventbridge"},
	} {
		q, ok := p.Queue(service)
		if !ok || !slices.Equal(q.Senders, want) {
			t.Errorf("senders of the queue of %s (%t) = %v, want %v", service, ok, q.Senders, want)
		}
	}
	if _, ok := p.Queue("watcher"); ok {
		t.Error("the watcher has a queue")
	}
}

// No message outlives its queue's retention, and a tick recurs before the previous one expires.
func TestRetentionsExceedExpiry(t *testing.T) {
	p := of(t, topology.Cluster{Name: "prod"})
	for _, spec := range event.Specs {
		for _, service := range spec.Consumers {
			if q, ok := p.Queue(service); ok && q.Retention < spec.TTL {
				t.Errorf("%s expires after %s, but the queue of %s retains it for %s", spec.Type, spec.TTL, service, q.Retention)
			}
		}
	}
	for _, q := range p.Queues {
		if q.Service == "interruption" && q.Visibility > time.Minute {
			t.Errorf("queue %s hides a spot warning, which lasts two minutes, for %s", q.Name, q.Visibility)
		}
		if q.Visibility < 6*q.Timeout || q.Timeout == 0 || q.Retention < 300*time.Second || q.DeadRetention < q.Retention {
			t.Errorf("%+v", q)
		}
	}
}

// Each tick's input decodes as a tick that its service handles.
func TestTicksDecode(t *testing.T) {
	for _, tick := range of(t, topology.Cluster{Name: "prod_1-A"}).Ticks {
		e, err := event.Decode([]byte(strings.ReplaceAll(tick.Input, "<aws.scheduler.scheduled-time>", "2026-11-22T16:00:00Z")))
		if err != nil {
			t.Errorf("%s: %v", tick.Name, err)
			continue
		}
		body, err := event.DecodeBody[event.Tick](e)
		if err != nil || body.Want != tick.Want || e.Cluster != "prod_1-A" {
			t.Errorf("%s: %+v of %s: %v", tick.Name, body, e.Cluster, err)
		}
		if other := strings.Contains(tick.Input, " "); other {
			t.Errorf("the input of %s has white space", tick.Name)
		}
	}
}

func rule(t *testing.T, cluster, id string) topology.Rule {
	t.Helper()
	rules := of(t, topology.Cluster{Name: cluster}).Rules
	i := slices.IndexFunc(rules, func(r topology.Rule) bool { return r.ID == id })
	if i < 0 {
		t.Fatalf("no rule %s", id)
	}
	return rules[i]
}

func matches(t *testing.T, r topology.Rule, raw []byte) bool {
	t.Helper()
	pattern, err := eventpattern.Compile([]byte(r.Pattern))
	if err != nil {
		t.Fatal(err)
	}
	ok, err := pattern.Match(raw)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// The default queue has Karpenter's name, and an existing queue is used unchanged.
func TestInterruptionQueue(t *testing.T) {
	for name, test := range map[string]struct {
		cluster  topology.Cluster
		want     string
		existing bool
	}{
		"ours":      {topology.Cluster{Name: "prod"}, "prod", false},
		"terraform": {topology.Cluster{Name: "prod", InterruptionQueue: "Karpenter-prod-SpotInterruptionQueue"}, "Karpenter-prod-SpotInterruptionQueue", true},
		"prefix":    {topology.Cluster{Name: "prod", Prefix: "p"}, "prod", false},
	} {
		q, _ := of(t, test.cluster).Queue("interruption")
		if q.Name != test.want || q.Existing != test.existing {
			t.Errorf("%s: queue %q, existing %t", name, q.Name, q.Existing)
		}
	}
}

func TestInvalidNames(t *testing.T) {
	long := strings.Repeat("c", 43)
	for name, test := range map[string]struct {
		cluster topology.Cluster
		says    string
	}{
		"none":         {topology.Cluster{}, "clusterName=prod"},
		"a space":      {topology.Cluster{Name: "my cluster"}, "list-clusters"},
		"a hyphen":     {topology.Cluster{Name: "-prod"}, "beginning with an alphanumeric one"},
		"quotes":       {topology.Cluster{Name: `a"b`}, "not the name of an EKS cluster"},
		"long":         {topology.Cluster{Name: long}, "at most 42"},
		"long prefix":  {topology.Cluster{Name: "prod", Prefix: long}, "at most 42"},
		"odd prefix":   {topology.Cluster{Name: "prod", Prefix: "a.b"}, "invalid prefix"},
		"queue's URL":  {topology.Cluster{Name: "prod", InterruptionQueue: "https://sqs.eu-west-1.amazonaws.com/1/prod"}, "neither its URL"},
		"queue's FIFO": {topology.Cluster{Name: "prod", InterruptionQueue: "prod.fifo"}, "standard queue"},
		"no queue":     {topology.Cluster{Name: strings.Repeat("c", 81), Prefix: "c"}, "interruptionQueue"},
	} {
		_, err := topology.NewPlan(test.cluster)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error()+fault.FindHint(err), test.says) {
			t.Errorf("%s: error %v (%s), want it to contain %q", name, err, fault.FindHint(err), test.says)
		}
	}
	if _, err := topology.NewPlan(topology.Cluster{Name: long, Prefix: "short"}); err != nil {
		t.Error(err)
	}
}

// Every name is valid in AWS, also with the longest prefix.
func TestLongestPrefixFits(t *testing.T) {
	p := of(t, topology.Cluster{Name: "c", Prefix: strings.Repeat("x", 42)})
	limit := func(kind, name string, most int) {
		if len(name) > most {
			t.Errorf("%s %s has %d characters, but AWS allows %d", kind, name, len(name), most)
		}
	}
	limit("archive", p.Archive, 48)
	limit("schedule group", p.ScheduleGroup, 64)
	for _, q := range p.Queues {
		limit("queue", q.Name, 80)
		limit("queue", q.Dead, 80)
		limit("function and role", p.Prefix+"-joist-"+q.Service, 64)
	}
	for _, r := range p.Rules {
		limit("rule", r.Name, 64)
	}
	for _, s := range p.Ticks {
		limit("schedule", s.Name, 64)
	}
	limit("role", "KarpenterNodeRole-"+p.Prefix, 64)
}
