package manifest

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// countOrExpression is maxPods of the kubelet's settings.
type countOrExpression struct{}

// UnmarshalJSON accepts text and the numbers that fit.
func (countOrExpression) UnmarshalJSON(text []byte) error {
	var expression string
	if json.Unmarshal(text, &expression) == nil {
		return nil
	}
	var count int32
	return json.Unmarshal(text, &count)
}

// customTypes describes the types that implement json.Unmarshaler.
var customTypes = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():          "a quantity such as 500m, 2 or 4Gi",
	reflect.TypeFor[metav1.Duration]():            "a duration such as 30s, 10m or 48h",
	reflect.TypeFor[karpenter.NillableDuration](): "a duration such as 30s, 10m or 720h, or Never",
	reflect.TypeFor[metav1.Time]():                "a time such as 2026-11-20T15:04:05Z",
	reflect.TypeFor[metav1.MicroTime]():           "a time such as 2026-11-20T15:04:05.000000Z",
	reflect.TypeFor[intstr.IntOrString]():         "a whole number or a percentage",
	reflect.TypeFor[countOrExpression]():          "a whole number, or an expression such as vcpus * 10",
}

func describeType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "base64 text"
	default:
		return "a whole number"
	}
}

// reportType reports a value of the wrong type and returns false, the callers' "present".
func (r *reader) reportType(n ast.Node, path string, depth int, wanted, hint string) bool {
	value := r.readUntyped(n, path, depth)
	got := describeValue(value)
	switch v := value.(type) {
	case string:
		got = quoteText(truncateText(v))
		if strings.Contains(v, "${") {
			hint = ": fill in the placeholder first"
		}
	case json.Number, bool:
		s, _ := scalarOf(n)
		got = s.written + ", " + got
	}
	if special := shapeHint(r.kind, path); special != "" {
		hint = special
	}
	r.report(r.placeOf(firstToken(n)), path, "expected %s, got %s%s", wanted, got, hint)
	return false
}

// truncateText shortens quoted text in messages.
func truncateText(text string) string {
	const limit = 60
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}
