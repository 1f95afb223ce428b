package cost_test

import (
	"flag"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/infra/cost"
	"github.com/joist-autoscaler/joist/shared/telemetry/board"
	"github.com/joist-autoscaler/joist/shared/topology"
)

var update = flag.Bool("update", false, "write the table in infra/README.md anew")

func plan(t *testing.T) topology.Plan {
	t.Helper()
	p, err := topology.Of(topology.Cluster{Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The README's table is the estimate's.
func TestReadme(t *testing.T) {
	const file, begin, end = "../README.md", "<!-- begin cost -->\n", "<!-- end cost -->"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	old, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", file)
	}
	table := cost.Table(plan(t), cost.AtRest, cost.Busy)
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != table {
		t.Errorf("%s has another estimate; run go test ./cost -update:\n%s", file, table)
	}
	if !strings.Contains(before+after, cost.PricesOf) {
		t.Errorf("%s does not say that prices are of %s", file, cost.PricesOf)
	}
}

func TestLines(t *testing.T) {
	for _, l := range []cost.Load{cost.AtRest, cost.Busy} {
		for _, line := range cost.Month(board.Cluster{Plan: plan(t)}, l) {
			if math.IsNaN(line.Dollars()) || line.Units < 0 || line.Price.Dollars <= 0 || line.Per <= 0 || !strings.HasPrefix(line.Source, "https://aws.amazon.com/") || line.Seen == "" {
				t.Errorf("%s: %+v", l.Name, line)
			}
		}
	}
	if line := (cost.Line{Price: cost.Price{Per: 1000, Dollars: 2}, Units: 500}); line.Dollars() != 1 {
		t.Errorf("half of a thousand at $2 costs %v", line.Dollars())
	}
}

// More of anything never costs less.
func TestMoreCostsMore(t *testing.T) {
	least := cost.Total(cost.Month(board.Cluster{Plan: plan(t)}, cost.AtRest))
	for name, more := range map[string]func(l *cost.Load){
		"nodes":     func(l *cost.Load) { l.Nodes = 1 },
		"classes":   func(l *cost.Load) { l.NodeClasses++ },
		"launched":  func(l *cost.Load) { l.Launched = 10 },
		"batches":   func(l *cost.Load) { l.Batches = 10 },
		"notices":   func(l *cost.Load) { l.Notices = 10 },
		"instances": func(l *cost.Load) { l.Instances = 10 },
	} {
		l := cost.AtRest
		more(&l)
		if got := cost.Total(cost.Month(board.Cluster{Plan: plan(t)}, l)); got <= least {
			t.Errorf("more %s costs $%.4f instead of $%.4f", name, got, least)
		}
	}
}

// Where clusters share functions, the alarms on these are the stack's, once: five functions,
// two metrics of each.
func TestSharedFunctionsSaveTheirAlarms(t *testing.T) {
	shared, err := topology.Of(topology.Cluster{Name: "prod", Functions: "all"})
	if err != nil {
		t.Fatal(err)
	}
	if saved := cost.Total(cost.Month(board.Cluster{Plan: plan(t)}, cost.Busy)) - cost.Total(cost.Month(board.Cluster{Plan: shared}, cost.Busy)); math.Abs(saved-1) > 1e-9 {
		t.Errorf("it saves $%.4f", saved)
	}
}

// What the services inside of the cluster tell CloudWatch is billed: their metrics, the alarms
// on them, and the log that they come by.
func TestInsideCosts(t *testing.T) {
	for _, l := range []cost.Load{cost.AtRest, cost.Busy} {
		without, with := cost.Month(board.Cluster{Plan: plan(t)}, l), cost.Month(board.Cluster{Plan: plan(t), Inside: true}, l)
		var more []string
		for i := range with {
			if with[i].Units > without[i].Units {
				more = append(more, with[i].What)
			}
		}
		if diff := cmp.Diff([]string{"CloudWatch Logs, GB written", "CloudWatch Logs, GB in a month", "CloudWatch custom metrics", "CloudWatch alarms, by metric"}, more); diff != "" {
			t.Errorf("%s (-want +got):\n%s", l.Name, diff)
		}
	}
}
