package manifest_test

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/shared/manifest"
)

// TestPlainScalarsMatchKubectl compares with kubectl's YAML library: a scalar is a string in
// both or in neither.
func TestPlainScalarsMatchKubectl(t *testing.T) {
	for _, word := range []string{
		"a", "y", "Y", "n", "N", "yes", "Yes", "YES", "no", "No", "on", "On", "ON", "off", "OFF", "true", "True", "TRUE", "tRUE", "false",
		"~", "null", "Null", "nil", "none", "1", "-1", "+1", "01", "0644", "08", "0o17", "0x1F", "0b101", "1_000", "1.5", ".5", "1.", "1e3", "12e4", "1E-3",
		"1.2.3", "1:30", "2026-11-20", "4Gi", "500m", "50%", "99999999999999999999", "ami-*****", "v1.2", "-", ".inf", "x y", "$HOME", "'1'", `"true"`, "!!str 5", `"\u0041"`, "|\n    5", ">-\n    a\n    b",
	} {
		var there map[string]any
		encoded, err := yaml.YAMLToJSON([]byte("a: " + word + "\n"))
		if err != nil || json.Unmarshal(encoded, &there) != nil {
			there = nil
		}
		text, isText := there["a"].(string)
		documents, err := manifest.Read("x.yaml", fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: %s\n", word))
		switch {
		case there["a"] == nil && err == nil && documents[0].Object.(*corev1.ConfigMap).Data["a"] == "":
			// A null is the empty string in both.
		case isText != (err == nil):
			t.Errorf("%s: kubectl reads %#v, manifest.Read: %v", word, there["a"], err)
		case isText && documents[0].Object.(*corev1.ConfigMap).Data["a"] != text:
			t.Errorf("%s: kubectl reads %q, manifest.Read %q", word, text, documents[0].Object.(*corev1.ConfigMap).Data["a"])
		}
	}
}
