package kubelet

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	sigsjson "sigs.k8s.io/json"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/kubelet/internal/v1beta1"
)

// maxPodsField is the only number that may be an expression.
const maxPodsField = "maxPods"

// ConfigurationType returns the struct with the kubelet's fields. In an EC2NodeClass, maxPods may also be text.
func ConfigurationType() reflect.Type { return reflect.TypeFor[v1beta1.KubeletConfiguration]() }

// Validate returns every error of the settings, in an order that depends on nothing else.
func Validate(k karpenter.KubeletConfiguration) []error {
	if len(k) == 0 {
		return nil
	}
	all := checkTypes(k)
	for _, err := range CheckRules(k) {
		all = append(all, err)
	}
	return all
}

// checkTypes decodes the settings like the kubelet, but strictly: names are case-sensitive, and an unknown or
// repeated field is an error at every depth. A value of the wrong type ends decoding, and is then the only error.
func checkTypes(k karpenter.KubeletConfiguration) []error {
	if _, isExpression := decodeField[string](k, maxPodsField); isExpression {
		k = maps.Clone(k)
		k[maxPodsField] = apiextensionsv1.JSON{Raw: []byte("0")}
	}
	text, err := json.Marshal(k)
	if err != nil {
		return []error{fmt.Errorf("spec.kubelet: %w", err)}
	}
	strict, err := sigsjson.UnmarshalStrict(text, &v1beta1.KubeletConfiguration{})
	if err != nil {
		return []error{fmt.Errorf("spec.kubelet: %w", err)}
	}
	var all []error
	for _, err := range strict {
		all = append(all, fmt.Errorf("spec.kubelet: %w", err))
	}
	return all
}

// decodeField returns the value of a field; false if the field is absent or has another type, which checkTypes
// reports.
func decodeField[T any](k karpenter.KubeletConfiguration, name string) (T, bool) {
	var value T
	raw, there := k[name]
	if !there || json.Unmarshal(raw.Raw, &value) != nil {
		var zero T
		return zero, false
	}
	return value, true
}
