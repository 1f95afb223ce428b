package upstream

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/kubelet"
)

// bothErrors returns Karpenter's and Joist's errors of the same kubelet settings, as the condition has them.
func bothErrors(settings map[string]string) (want, got string) {
	theirs, ours := awsv1.KubeletConfiguration{}, karpenter.KubeletConfiguration{}
	for name, text := range settings {
		theirs[name] = apiextensionsv1.JSON{Raw: []byte(text)}
		ours[name] = apiextensionsv1.JSON{Raw: []byte(text)}
	}
	return joinTexts(awsv1.ValidateKubeletConfig(theirs)), joinTexts(kubelet.Validate(ours))
}

func joinTexts(errs []error) string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

// kubeletFields are the names of the kubelet's fields, and names that it does not know.
func kubeletFields() []string {
	names := []string{"bogus", "MaxPods", "nodeConfig", ""}
	for field := range reflect.TypeFor[kubeletv1beta1.KubeletConfiguration]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// kubeletValues are values of all types, some of them valid for some fields.
var kubeletValues = []string{
	`null`, `true`, `0`, `-1`, `1`, `85`, `101`, `1.5`, `2147483648`, `1e400`, `""`, `"10"`, `"vcpus * 10"`, `"1m"`, `"-1m"`, `"soon"`, `[]`, `["10.0.0.10"]`, `[1]`,
	`{}`, `{"cpu":"100m","memory":"1Gi"}`, `{"cpu":"-1"}`, `{"gpu":"1","cpu":"vcpus * 30"}`, `{"cpu":1}`, `{"cpu":null}`,
	`{"memory.available":"5%","nodefs.available":"10%"}`, `{"memory.available":"101%"}`, `{"memory.available":"lots","signal":"-5Mi"}`, `{"memory.available":"1m"}`,
	`{"memory.available":"NaN%"}`, `{"memory.available":""}`, `{"memory.available":"-1s","pid.available":"5"}`, `{"imagefs.available":"1e3"}`,
	`{"format":"json","flushFrequency":"5s","options":{"json":{"infoBufferSize":"100Mi","splitStream":true}}}`,
	`{"flushFrequency":5,"verbosity":-1}`, `{"flushFrequency":true}`, `{"flushFrequency":"x"}`, `{"vmodule":[{"filePattern":"a","verbosity":"1"}]}`, `{"vmodule":{}}`,
	`{"options":{"text":{"infoBufferSize":[]}}}`, `{"options":{"json":{"nope":1}}}`, `{"format":1}`, `{"verbosity":1,"verbosity":2}`, `{"Format":"json"}`,
	`{"endpoint":"localhost:4317","samplingRatePerMillion":1}`, `{"samplingRatePerMillion":"1"}`, `{"anonymous":{"enabled":false},"webhook":{"cacheTTL":"2m"}}`,
	`{"x509":{"clientCAFile":1}}`, `{"mode":"Webhook"}`, `{"mode":1}`, `{"swapBehavior":"LimitedSwap"}`, `[{"numaNode":0,"limits":{"memory":"1Gi"}}]`,
	`[{"numaNode":"0","limits":{"memory":"1x"}}]`, `[{"priority":1,"shutdownGracePeriodSeconds":2,"x":3}]`, `[{"key":"a","effect":"NoSchedule"}]`, `[{"key":1}]`,
	`{"maxContainerRestartPeriod":"5s"}`, `{"maxContainerRestartPeriod":5}`, `{"FeatureA":true}`, `{"FeatureA":"yes"}`, `{"idsPerPod":1}`, `{"idsPerPod":"1"}`,
}

// TestKubeletErrorsMatchKarpenter compares the errors of every field with every value.
func TestKubeletErrorsMatchKarpenter(t *testing.T) {
	compared, wrong := 0, 0
	for _, name := range kubeletFields() {
		for _, value := range kubeletValues {
			want, got := bothErrors(map[string]string{name: value})
			if want != got {
				t.Errorf("%s: %s: got\n%s\nwant\n%s", name, value, got, want)
			}
			if compared++; want != "" {
				wrong++
			}
		}
	}
	t.Logf("%d settings, %d of them wrong", compared, wrong)
}

// TestRandomKubeletErrorsMatchKarpenter compares the errors of several fields together.
func TestRandomKubeletErrorsMatchKarpenter(t *testing.T) {
	often := []string{
		"maxPods", "podsPerCore", "systemReserved", "kubeReserved", "evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim",
		"imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "registerWithTaints", "logging", "bogus", "evictionMaxPodGracePeriod",
	}
	names := rapid.SampledFrom(slices.Concat(often, often, often, kubeletFields()))
	rapid.Check(t, func(t *rapid.T) {
		settings := rapid.MapOfN(names, rapid.SampledFrom(kubeletValues), 1, 6).Draw(t, "settings")
		if want, got := bothErrors(settings); want != got {
			t.Fatalf("%v: got\n%s\nwant\n%s", settings, got, want)
		}
	})
}

// TestDroppedKubeletFieldsMatchKarpenter compares the fields that bootstrap scripts drop.
func TestDroppedKubeletFieldsMatchKarpenter(t *testing.T) {
	theirs, ours := awsv1.KubeletConfiguration{}, karpenter.KubeletConfiguration{}
	for _, name := range kubeletFields() {
		theirs[name], ours[name] = apiextensionsv1.JSON{Raw: []byte(`[]`)}, apiextensionsv1.JSON{Raw: []byte(`[]`)}
	}
	want := "spec.kubelet has fields not applied by the AL2 AMI family that would be silently dropped: " + strings.Join(awsv1.UnmanagedKubeletFields(theirs), ", ")
	if err := kubelet.CheckFamily(karpenter.AMIFamilyAL2, ours); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
