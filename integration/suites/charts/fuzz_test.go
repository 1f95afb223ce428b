package charts

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/joist-autoscaler/joist/integration/environment/helm"
	"github.com/joist-autoscaler/joist/shared/manifest/convert"
)

// FuzzValues: values that Joist's chart accepts are still accepted after their conversion, which a second conversion
// does not change.
func FuzzValues(f *testing.F) {
	seeds, err := filepath.Glob(converting + "/testdata/values-*.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range append(seeds, helm.Joist+"/values.yaml") {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("settings:\n  clusterName: a\n  interruptionQueue: b\nreplicas: 3\n"))
	schemaText, err := os.ReadFile(helm.Joist + "/values.schema.json")
	if err != nil {
		f.Fatal(err)
	}
	var schema spec.Schema
	if err := json.Unmarshal(schemaText, &schema); err != nil {
		f.Fatal(err)
	}
	validator := validate.NewSchemaValidator(&schema, nil, "", strfmt.Default)
	f.Fuzz(func(t *testing.T, text []byte) {
		before, ok := readValues(text)
		result := convert.Convert([]convert.Input{{Name: "values.yaml", Data: text}}, convert.ConversionOptions{})
		converted := result.Files[0]
		if again := convert.Convert([]convert.Input{{Name: "values.yaml", Data: converted.Text}}, convert.ConversionOptions{}); !bytes.Equal(again.Files[0].Text, converted.Text) {
			t.Fatalf("the second conversion changes\n%s\nto\n%s", converted.Text, again.Files[0].Text)
		}
		if !ok || converted.Kind != convert.Values || !validator.Validate(before).IsValid() {
			return
		}
		after, ok := readValues(converted.Text)
		if !ok {
			t.Fatalf("the converted values are not YAML:\n%s\n->\n%s", text, converted.Text)
		}
		if found := validator.Validate(after); !found.IsValid() {
			t.Fatalf("the chart accepts\n%s\nbut not\n%s\n%v", text, converted.Text, found.Errors)
		}
	})
}

func readValues(text []byte) (map[string]any, bool) {
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil, false
	}
	return values, true
}
