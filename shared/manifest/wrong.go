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

// nouns are the types that read their own JSON, in words.
var nouns = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():          "a quantity such as 500m, 2 or 4Gi",
	reflect.TypeFor[metav1.Duration]():            "a duration such as 30s, 10m or 48h",
	reflect.TypeFor[karpenter.NillableDuration](): "a duration such as 30s, 10m or 720h, or Never,",
	reflect.TypeFor[metav1.Time]():                "a time such as 2026-11-20T15:04:05Z",
	reflect.TypeFor[metav1.MicroTime]():           "a time such as 2026-11-20T15:04:05.000000Z",
	reflect.TypeFor[intstr.IntOrString]():         "a whole number or a percentage",
}

func want(t reflect.Type) string {
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

// wrong reports a value of the wrong type. It gives false, for the callers'
// "present".
func (r *reader) wrong(n ast.Node, path string, depth int, wanted, remedy string) bool {
	value := r.anything(n, path, depth)
	is := noun(value)
	switch v := value.(type) {
	case string:
		is = quoted(clip(v)) + " stands"
		if strings.Contains(v, "${") {
			remedy = ": fill in the placeholder first"
		}
	case json.Number, bool:
		s, _ := scalarOf(n)
		is = s.written + ", " + is + ", stands"
	default:
		is += " stands"
	}
	if special := special(r.kind, path); special != "" {
		remedy = special
	}
	r.report(r.place(start(n)), path, "%s where %s%s", is, wanted, remedy)
	return false
}

// clip keeps a message short whatever it quotes.
func clip(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
