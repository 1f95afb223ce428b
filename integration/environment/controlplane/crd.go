package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// readCRDs returns the definitions in all YAML files of a folder. It rejects other
// objects, which would otherwise show much later as a missing type.
func readCRDs(dir string) ([]*unstructured.Unstructured, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.y*ml"))
	if err != nil {
		return nil, fmt.Errorf("reading CRDs: %w", err)
	}
	var crds []*unstructured.Unstructured
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading CRDs: %w", err)
		}
		found, err := parseCRDs(content)
		if err != nil {
			return nil, fmt.Errorf("reading CRDs of %s: %w", path, err)
		}
		crds = append(crds, found...)
	}
	if len(crds) == 0 {
		return nil, fmt.Errorf("reading CRDs: %s has no CRDs in files named *.yaml", dir)
	}
	return crds, nil
}

func parseCRDs(content []byte) ([]*unstructured.Unstructured, error) {
	var crds []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		var crd unstructured.Unstructured
		err := decoder.Decode(&crd.Object)
		switch {
		case errors.Is(err, io.EOF):
			return crds, nil
		case err != nil:
			return nil, err
		case len(crd.Object) == 0: // an empty document
		case crd.GetKind() != "CustomResourceDefinition":
			return nil, fmt.Errorf("%s %q is not a CustomResourceDefinition", crd.GetKind(), crd.GetName())
		default:
			crds = append(crds, &crd)
		}
	}
}

// applyCRDs installs the definitions of a folder and waits until all are served.
func applyCRDs(ctx context.Context, config *rest.Config, dir string) error {
	crds, err := readCRDs(dir)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	resource := client.Resource(crdResource)
	for _, crd := range crds {
		if _, err := resource.Create(ctx, crd, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating CRD %s: %w", crd.GetName(), err)
		}
	}
	for _, crd := range crds {
		if err := awaitServed(ctx, client, crd.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// awaitServed waits for the condition and then for a response, because the server handles
// a new type a moment after it sets the condition.
func awaitServed(ctx context.Context, client dynamic.Interface, name string) error {
	return await(ctx, "CRD "+name+" to be established", crdPatience, func(ctx context.Context) error {
		crd, err := client.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !hasCondition(crd, "Established") {
			return errors.New("it is not established yet")
		}
		_, err = client.Resource(instancesOf(crd)).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
}

// instancesOf returns the resource that an established CRD defines, in its storage
// version.
func instancesOf(crd *unstructured.Unstructured) schema.GroupVersionResource {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	if len(stored) == 0 {
		stored = []string{""}
	}
	return schema.GroupVersionResource{Group: group, Version: stored[len(stored)-1], Resource: plural}
}

func hasCondition(object *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		condition, isMap := c.(map[string]any)
		if isMap && condition["type"] == kind && condition["status"] == "True" {
			return true
		}
	}
	return false
}
