package charts

import (
	"os"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/integration/environment/helm"
)

// The chart has the alerts that the metric catalogue generates.
func TestAlerts(t *testing.T) {
	generated, err := os.ReadFile(root + "/deploy/grafana/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, helm.Joist+"/files/alerts.yaml", string(generated))
}
