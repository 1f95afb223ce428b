package kubecluster_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"k8s.io/klog/v2"

	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
)

// client-go's log lines are JSON like all others.
func TestLogTo(t *testing.T) {
	t.Cleanup(klog.ClearLogger)
	var out bytes.Buffer
	kubecluster.SetLogger(slog.New(slog.NewJSONHandler(&out, nil)))
	klog.Background().Info("Warning: watch ended with error", "reflector", "pods")
	klog.Flush()
	var line struct{ Level, Msg, Reflector string }
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Level != "INFO" || line.Reflector != "pods" {
		t.Errorf("%+v, %v: %s", line, err, out.String())
	}
}
