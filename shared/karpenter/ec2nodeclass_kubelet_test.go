package karpenter

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Parse reads what Joist uses. All settings keep their text, also the ones that Joist does not know.
func TestKubeletSettings(t *testing.T) {
	const text = `{"evictionSoftGracePeriod":{"memory.available":"90s"},"logging":{"verbosity":3,"flushFrequency":9007199254740993},` +
		`"maxPods":110,"memorySwap":{"swapBehavior":"NoSwap"},"someNewField":[1.50,null,{"b":1,"a":2}]}`
	var k KubeletConfiguration
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		t.Fatal(err)
	}
	parsed, err := k.DeepCopy().Parse()
	want := ParsedKubelet{
		MaxPods: new(intstr.FromInt32(110)), EvictionSoftGracePeriod: map[string]metav1.Duration{"memory.available": {Duration: 90 * time.Second}},
	}
	if diff := cmp.Diff(want, parsed); diff != "" || err != nil {
		t.Errorf("parsed settings, error %v (-want +got):\n%s", err, diff)
	}
	again, err := json.Marshal(k.DeepCopy())
	if diff := cmp.Diff(text, string(again)); diff != "" || err != nil {
		t.Errorf("text, error %v (-before +after):\n%s", err, diff)
	}
}

func TestKubeletSettingsThatDoNotParse(t *testing.T) {
	for text, want := range map[string]string{
		`null`: "", `{}`: "", `{"maxPods":null}`: "", `{"maxPods":"min(110, max_pods)"}`: "",
		`{"maxPods":1.5}`: "maxPods", `{"kubeReserved":{"cpu":1}}`: "kubeReserved", `{"clusterDNS":"10.0.0.10"}`: "clusterDNS",
		`{"evictionSoftGracePeriod":{"memory.available":"soon"}}`: "soon", `{"podsPerCore":3000000000}`: "podsPerCore",
	} {
		var k KubeletConfiguration
		if err := json.Unmarshal([]byte(text), &k); err != nil {
			t.Fatal(err)
		}
		_, err := k.Parse()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want it to name %q", text, err, want)
		}
	}
}
