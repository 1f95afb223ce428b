package metric

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each entry has all that dashboards and documentation need.
func TestCatalogue(t *testing.T) {
	names := map[string]bool{}
	for _, m := range Catalogue {
		t.Run(m.Name, func(t *testing.T) {
			if names[m.Name] || !regexp.MustCompile(`^(joist|karpenter|client_go|rest_client|aws_sdk_go)_[a-z0-9_]+$`).MatchString(m.Name) {
				t.Error("the name is taken or not lower_case")
			}
			names[m.Name] = true
			// Karpenter's cost gauge ends in _total, and dashboards query that name.
			if strings.HasSuffix(m.Name, "_total") != (m.Kind == Counter) && m.Name != PoolCost.Name {
				t.Error("counters end in _total, and nothing else does")
			}
			if m.Unit == "s" && !strings.HasSuffix(m.Name, "_seconds") {
				t.Error("the name does not say its unit")
			}
			if m.Unit == "" || !strings.HasSuffix(m.Help, ".") {
				t.Error("unit or help are missing")
			}
			if (m.Kind == Histogram) != (len(m.Buckets) > 0) || !slices.IsSorted(m.Buckets) {
				t.Errorf("buckets %v", m.Buckets)
			}
			if m.PerObject != (m.Panel == "") || m.PerObject && m.CloudWatch != nil {
				t.Error("only metrics with a series for each object have no panel, and CloudWatch would bill each series")
			}
			series := 1
			for _, l := range m.Labels {
				if l.Help == "" || l.Max <= 0 {
					t.Errorf("label %s has no help or no bound", l.Name)
				}
				if !l.Implied {
					series *= l.Max
				}
			}
			if series > 2000 {
				t.Errorf("there can be %d series", series)
			}
		})
	}
}

// seriesMax and insideMax limit the cost of one cluster: CloudWatch bills each combination of dimensions, 0.30 US
// dollars a month for each of the first ten thousand (https://aws.amazon.com/cloudwatch/pricing/). The services
// inside the cluster send metrics only if configured.
const (
	seriesMax = 120
	insideMax = 80
)

func TestCloudWatchIsBounded(t *testing.T) {
	series := map[bool]int{}
	for _, m := range Catalogue {
		if m.CloudWatch == nil {
			continue
		}
		if m.CloudWatch[0] != ByCluster {
			t.Errorf("%s: a metric for CloudWatch has no cluster", m.Name)
		}
		product := 1
		for _, d := range m.CloudWatch[1:] {
			i := slices.IndexFunc(m.Labels, func(l Label) bool { return l.Name == d })
			if i < 0 {
				t.Fatalf("%s has no label %s", m.Name, d)
			}
			product *= m.Labels[i].Max
		}
		series[m.Inside()] += product
	}
	for inside, most := range map[bool]int{false: seriesMax, true: insideMax} {
		t.Logf("inside of the cluster %t: at most %d series", inside, series[inside])
		if series[inside] > most {
			t.Errorf("inside of the cluster %t: there can be %d series, and %d may be", inside, series[inside], most)
		}
	}
}
