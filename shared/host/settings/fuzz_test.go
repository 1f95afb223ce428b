package settings_test

import (
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// FuzzRead: the text of any variable is accepted, ignored with a warning, or named by the error.
func FuzzRead(f *testing.F) {
	for i, v := range settings.Variables {
		for _, text := range []string{v.Example, v.Default, "-1", "a=b,c", "%", "1e400", "\x00"} {
			f.Add(i, text)
		}
	}
	f.Fuzz(func(t *testing.T, index int, text string) {
		if index < 0 || index >= len(settings.Variables) {
			return
		}
		name := settings.Variables[index].Name
		_, err := settings.Read(func(asked string) (string, bool) { return text, asked == name })
		if err != nil && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), name)) {
			t.Fatalf("%s=%q: %s: %v", name, text, fault.KindOf(err), err)
		}
	})
}

// FuzzReadClusters: the settings of several clusters are accepted, or the error is Invalid.
func FuzzReadClusters(f *testing.F) {
	f.Add(`[{"CLUSTER_NAME":"a","JOIST_QUEUE_URL":"https://sqs.eu-west-1.amazonaws.com/123456789012/q","JOIST_BUCKET":"b","JOIST_PREFIX":"/a/"},{"CLUSTER_NAME":"b","JOIST_PREFIX":"a"}]`)
	f.Add(`[{"CLUSTER_NAME":"a"},{"CLUSTER_NAME":"a"}]`)
	f.Add("[")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := settings.ReadClusters(func(asked string) (string, bool) { return text, asked == settings.Clusters })
		if err != nil {
			if !fault.Is(err, fault.Invalid) || len(err.Error()) < 10 {
				t.Fatalf("%q: %s: %v", text, fault.KindOf(err), err)
			}
			return
		}
		if len(all) == 0 {
			t.Fatalf("%q has no cluster and no error", text)
		}
	})
}
