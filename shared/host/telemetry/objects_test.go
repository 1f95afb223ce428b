package telemetry

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// Each metric with a series for each object is served with the labels of the catalogue, as often as it is collected, and nothing
// remains of an object that is gone.
func TestObjectsAreServed(t *testing.T) {
	m, err := newMeters(nil)
	if err != nil {
		t.Fatal(err)
	}
	served := &Telemetry{meters: m}
	objects := []string{"a", "b"}
	served.CollectObjects(func(record metric.ObjectRecorder) {
		for _, name := range objects {
			for _, entry := range metric.Catalogue {
				if !entry.PerObject {
					continue
				}
				var labels []string
				resource := ""
				for _, l := range entry.Labels {
					if l.Name == "resource_type" {
						resource = "cpu-" + name
					} else {
						labels = append(labels, l.Name+"-"+name)
					}
				}
				record(labels, []metric.ObjectValue{{Metric: entry, Resource: resource, Value: 2.5}})
			}
			record(nil, nil) // No values are no series.
		}
	})
	serve := func() string {
		w := httptest.NewRecorder()
		m.handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if w.Code != 200 {
			t.Fatal(w.Body.String())
		}
		return w.Body.String()
	}
	text := serve()
	for _, entry := range metric.Catalogue {
		if !entry.PerObject {
			continue
		}
		for _, name := range objects {
			var labels []string
			for _, l := range entry.Labels {
				value := l.Name + "-" + name
				if l.Name == "resource_type" {
					value = "cpu-" + name
				}
				labels = append(labels, l.Name+`="`+value+`"`)
			}
			slices.Sort(labels)
			if want := entry.Name + "{" + strings.Join(labels, ",") + "} 2.5\n"; !strings.Contains(text, want) {
				t.Errorf("no line %s", want)
			}
		}
	}
	objects = []string{"a"}
	if text := serve(); strings.Contains(text, `="name-b"`) || !strings.Contains(text, `="name-a"`) {
		t.Errorf("the objects are not those of the scrape:\n%s", text)
	}
}
