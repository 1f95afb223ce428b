package cost_test

import (
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/infra/cost"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/host/telemetry/board"
	"github.com/joist-autoscaler/joist/shared/topology"
)

var update = flag.Bool("update", false, "rewrite the table in infra/README.md")

func testPlan(t *testing.T) topology.Plan {
	t.Helper()
	p, err := topology.NewPlan(topology.Cluster{Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The README has the estimate's table.
func TestReadmeLoadTable(t *testing.T) {
	checkReadme(t, "cost", cost.LoadTable(testPlan(t), cost.AtRest, cost.Busy))
}

// The README has the estimate's table of pods.
func TestReadmePodTable(t *testing.T) { checkReadme(t, "pods", cost.PodTable()) }

// checkReadme compares a table of the README with an estimate.
func checkReadme(t *testing.T, name, table string) {
	t.Helper()
	file, begin, end := "../README.md", "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	old, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no markers for the table", file)
	}
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
		t.Errorf("%s does not state that the prices are of %s", file, cost.PricesOf)
	}
}

func TestBillLines(t *testing.T) {
	for _, l := range []cost.Load{cost.AtRest, cost.Busy} {
		for _, line := range cost.MonthlyBill(board.Cluster{Plan: testPlan(t)}, l) {
			if math.IsNaN(line.Dollars()) || line.Units < 0 || line.Price.Dollars <= 0 || line.Per <= 0 || !strings.HasPrefix(line.Source, "https://aws.amazon.com/") || line.Seen == "" {
				t.Errorf("%s: %+v", l.Name, line)
			}
		}
	}
	if line := (cost.Line{Price: cost.Price{Per: 1000, Dollars: 2}, Units: 500}); line.Dollars() != 1 {
		t.Errorf("500 of 1,000 units at $2 cost $%v", line.Dollars())
	}
}

// A higher load never costs less.
func TestBillGrowsWithLoad(t *testing.T) {
	least := cost.Total(cost.MonthlyBill(board.Cluster{Plan: testPlan(t)}, cost.AtRest))
	for name, more := range map[string]func(l *cost.Load){
		"nodes":     func(l *cost.Load) { l.Nodes = 1 },
		"classes":   func(l *cost.Load) { l.NodeClasses++ },
		"launched":  func(l *cost.Load) { l.Launches = 10 },
		"batches":   func(l *cost.Load) { l.Batches = 10 },
		"notices":   func(l *cost.Load) { l.Notices = 10 },
		"instances": func(l *cost.Load) { l.InstanceChanges = 10 },
	} {
		l := cost.AtRest
		more(&l)
		if got := cost.Total(cost.MonthlyBill(board.Cluster{Plan: testPlan(t)}, l)); got <= least {
			t.Errorf("with more %s the bill is $%.4f instead of $%.4f", name, got, least)
		}
	}
}

// With shared functions, the function alarms exist once per stack: five functions, two
// metrics each.
func TestSharedFunctionsHaveFewerAlarms(t *testing.T) {
	shared, err := topology.NewPlan(topology.Cluster{Name: "prod", Functions: "all"})
	if err != nil {
		t.Fatal(err)
	}
	if saved := cost.Total(cost.MonthlyBill(board.Cluster{Plan: testPlan(t)}, cost.Busy)) - cost.Total(cost.MonthlyBill(board.Cluster{Plan: shared}, cost.Busy)); math.Abs(saved-1) > 1e-9 {
		t.Errorf("shared functions save $%.4f", saved)
	}
}

// CloudWatch metrics of the services inside the cluster are billed: the metrics, their
// alarms, and the log that carries them.
func TestCloudWatchMetricsCost(t *testing.T) {
	for _, l := range []cost.Load{cost.AtRest, cost.Busy} {
		without, with := cost.MonthlyBill(board.Cluster{Plan: testPlan(t)}, l), cost.MonthlyBill(board.Cluster{Plan: testPlan(t), Inside: true}, l)
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

// A cluster at rest sends only metrics of the metric catalogue, and fewer than a busy
// one.
func TestIdleMetricsExist(t *testing.T) {
	for _, name := range cost.IdleNames() {
		i := slices.IndexFunc(metric.Catalogue, func(m metric.Metric) bool { return m.Name == name })
		if i < 0 || metric.Catalogue[i].CloudWatch == nil {
			t.Errorf("%s is not a metric that CloudWatch receives", name)
		}
	}
}

// FargateSize adds a quarter of a GiB and rounds up to a size of Fargate.
func TestFargateSize(t *testing.T) {
	for _, test := range []struct{ cores, memory, billedCores, billedMemory float64 }{
		{0.1, 0.25, 0.25, 0.5}, {0.1, 0.5, 0.25, 1}, {0.25, 1.75, 0.25, 2}, {0.25, 1.8, 0.5, 3}, {1, 1, 1, 2}, {1, 7.9, 2, 9},
	} {
		if cores, memory := cost.FargateSize(test.cores, test.memory); cores != test.billedCores || memory != test.billedMemory {
			t.Errorf("%v cores and %v GiB are billed as %v and %v, want %v and %v", test.cores, test.memory, cores, memory, test.billedCores, test.billedMemory)
		}
	}
}
