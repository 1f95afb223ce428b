package helm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// Objects decodes rendered objects into Kubernetes's types. An unknown or duplicate field
// is an error; an API server would silently drop it.
func Objects(manifest string) ([]runtime.Object, error) {
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	var objects []runtime.Object
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading a rendered chart: %w", err)
		}
		if empty(string(text)) {
			continue
		}
		object, _, err := strict.Decode(text, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("reading a rendered object: %w\n%s", err, text)
		}
		objects = append(objects, object)
	}
}

// empty reports whether a document has only comments.
func empty(document string) bool {
	for line := range strings.Lines(document) {
		if line = strings.TrimSpace(line); line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}
