package upstream

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/aws/karpenter-provider-aws/pkg/controllers/interruption" // Each of these packages registers metrics.
	_ "github.com/aws/karpenter-provider-aws/pkg/controllers/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	_ "sigs.k8s.io/karpenter/pkg/cloudprovider/metrics"
	_ "sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/metrics/node"
	_ "sigs.k8s.io/karpenter/pkg/controllers/metrics/nodepool"
	_ "sigs.k8s.io/karpenter/pkg/controllers/metrics/pod"
	_ "sigs.k8s.io/karpenter/pkg/controllers/node/termination"
	_ "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/lifecycle"
	_ "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/reboot"
	_ "sigs.k8s.io/karpenter/pkg/controllers/pod/deletioncost"

	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// describedMetric matches the text of a metric's description.
var describedMetric = regexp.MustCompile(`fqName: "(karpenter_[^"]*)".*variableLabels: \{([^}]*)\}`)

// Dashboards and alerts of Karpenter work, because a metric of its name has its labels. Each other metric
// of Karpenter is listed with the reason.
func TestSameMetrics(t *testing.T) {
	theirs := readRegisteredMetrics()
	for _, m := range metric.Catalogue {
		if !strings.HasPrefix(m.Name, "karpenter_") {
			continue
		}
		var labels []string
		for _, l := range m.Labels {
			labels = append(labels, l.Name)
		}
		if got, want := joinLabels(labels), theirs[m.Name]; got != want {
			t.Errorf("%s has the labels %s, and Karpenter's has %s", m.Name, got, want)
		}
		delete(theirs, m.Name)
	}
	for _, m := range metric.KarpenterMetrics {
		if _, known := theirs[m.Name]; !known && m.Name != "karpenter_build_info" { // Its operator registers that one.
			t.Errorf("Karpenter has no metric %s, which is listed", m.Name)
		}
		delete(theirs, m.Name)
	}
	for name := range theirs {
		t.Errorf("Karpenter's metric %s is not listed", name)
	}
}

// registerNodeMetrics registers the metrics of nodes, which Karpenter does when it starts.
var registerNodeMetrics = sync.OnceFunc(func() { node.NewController(nil) })

// readRegisteredMetrics returns the labels of the metrics that Karpenter's packages registered, by name.
func readRegisteredMetrics() map[string]string {
	registerNodeMetrics()
	described := make(chan *prometheus.Desc)
	go func() {
		metrics.Registry.(*prometheus.Registry).Describe(described)
		close(described)
	}()
	out := map[string]string{}
	for d := range described {
		if found := describedMetric.FindStringSubmatch(d.String()); found != nil {
			out[found[1]] = joinLabels(strings.Split(found[2], ","))
		}
	}
	return out
}

func joinLabels(names []string) string {
	slices.Sort(names)
	return "{" + strings.Join(names, ",") + "}"
}
