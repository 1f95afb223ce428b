package testbed

import (
	"bytes"
	"errors"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// Apply creates the objects of a file, as kubectl does. ${NAME} is replaced by vars.
func (w *TestBed) Apply(path string, vars map[string]string) {
	w.Helper()
	text, err := os.ReadFile(path)
	w.RequireNoError(err)
	if vars != nil {
		text = []byte(os.Expand(string(text), func(name string) string { return vars[name] }))
	}
	client, err := dynamic.NewForConfig(w.Plane.Config)
	w.RequireNoError(err)
	kinds := w.kinds()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var object unstructured.Unstructured
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		w.RequireNoError(err)
		kind := object.GroupVersionKind()
		mapping, err := kinds.RESTMapping(kind.GroupKind(), kind.Version)
		w.RequireNoError(err)
		resource := dynamic.ResourceInterface(client.Resource(mapping.Resource))
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			if object.GetNamespace() == "" {
				object.SetNamespace(metav1.NamespaceDefault)
			}
			resource = client.Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		if _, err := resource.Create(w.Context(), &object, metav1.CreateOptions{}); err != nil {
			w.Fatalf("applying %s %s of %s: %v", object.GetKind(), object.GetName(), path, err)
		}
	}
}

// kinds asks the API server what it serves.
func (w *TestBed) kinds() meta.RESTMapper {
	w.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(w.Plane.Config)
	w.RequireNoError(err)
	groups, err := restmapper.GetAPIGroupResources(client)
	w.RequireNoError(err)
	return restmapper.NewDiscoveryRESTMapper(groups)
}
