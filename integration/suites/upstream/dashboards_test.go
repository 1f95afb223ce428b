package upstream

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// read is what a panel of a dashboard reads: a metric, the labels that it is selected by, and the labels that it is summed by.
type read struct {
	dashboard, panel, metric string
	selects, sums            []string
}

func readDashboards(t *testing.T) []read {
	t.Helper()
	text, err := os.ReadFile("testdata/dashboards.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []read
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 5 {
			t.Fatalf("not five fields: %q", line)
		}
		all = append(all, read{fields[0], fields[1], fields[2], splitLabels(fields[3]), splitLabels(fields[4])})
	}
	return all
}

func splitLabels(text string) []string {
	if text == "-" {
		return nil
	}
	return strings.Split(text, ",")
}

// scraped are the labels that Prometheus adds or that belong to the kind of a metric.
var scraped = []string{"cluster", "job", "quantile", "le"}

// missing returns what Joist lacks for a panel; empty if it lacks nothing.
func (r read) missing() string {
	i := slices.IndexFunc(metric.Catalogue, func(m metric.Metric) bool { return m.Name == r.metric })
	switch {
	case strings.HasPrefix(r.metric, "node_"):
		return "" // The node exporter has it.
	case i < 0:
		return "`" + r.metric + "`"
	}
	var labels []string
	for _, l := range metric.Catalogue[i].Labels {
		labels = append(labels, l.Name)
	}
	for _, name := range r.selects {
		if !slices.Contains(labels, name) && !slices.Contains(scraped, name) {
			return fmt.Sprintf("the label %s of `%s`", name, r.metric)
		}
	}
	return ""
}

// TestDashboards compares what each panel of Karpenter's published Grafana dashboards reads with Joist's catalogue, and the
// result with the page.
func TestDashboards(t *testing.T) {
	var rows strings.Builder
	var last read
	lacks, complete := []string{}, 0
	flush := func() {
		if last.panel == "" {
			return
		}
		result := "works"
		if len(lacks) > 0 && last.dashboard == "karpenter-capacity-dashboard" {
			t.Errorf("the capacity dashboard lacks %v for %s", lacks, last.panel)
		}
		if len(lacks) > 0 {
			result = "lacks " + strings.Join(lacks, ", ")
		} else {
			complete++
		}
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", last.dashboard, strings.ReplaceAll(last.panel, "$", ""), result)
	}
	for _, r := range readDashboards(t) {
		if r.dashboard != last.dashboard || r.panel != last.panel {
			flush()
			lacks = nil
		}
		if m := r.missing(); m != "" && !slices.Contains(lacks, m) {
			lacks = append(lacks, m)
		}
		last = r
	}
	flush()
	// If a metric of these panels were renamed, fewer would be complete.
	if complete < 17 {
		t.Errorf("%d panels and variables have all they read, and at least 17 had", complete)
	}
	const page = "../../../deploy/docs/tools.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?s)(<!-- begin dashboards -->\n).*(<!-- end dashboards -->)`)
	if !table.Match(text) {
		t.Fatalf("%s has no place for the table", page)
	}
	want := "| dashboard | panel | with Joist |\n|---|---|---|\n" + rows.String()
	now := table.ReplaceAllString(string(text), "${1}"+want+"${2}")
	if *update {
		if err := os.WriteFile(page, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(now, string(text)); diff != "" {
		t.Errorf("the page shows another table (-want +got); try: go test ./suites/upstream -run TestDashboards -update\n%s", diff)
	}
}

func TestMissing(t *testing.T) {
	for _, test := range []struct {
		read read
		want string
	}{
		{read{metric: "karpenter_nodes_created_total", selects: []string{"nodepool", "cluster"}}, ""},
		{read{metric: "karpenter_nodes_created_total", selects: []string{"arch"}}, "the label arch of `karpenter_nodes_created_total`"},
		{read{metric: "karpenter_nodes_allocatable", selects: []string{"arch", "resource_type"}}, ""},
		{read{metric: "karpenter_nodes_total_pod_limits"}, "`karpenter_nodes_total_pod_limits`"},
		{read{metric: "node_time_seconds", sums: []string{"node"}}, ""},
	} {
		if got := test.read.missing(); got != test.want {
			t.Errorf("%+v: %q, want %q", test.read, got, test.want)
		}
	}
}
