// Command crdgen writes the manifests of the custom resources.
//
// controller-gen generates schemas from the markers on the Go types. crdgen adds what it cannot express: rules inside
// Kubernetes' own types (Taint, Condition), rules on the values of maps, and rules that differ between two kinds that
// share a type. controller-gen also supports only one group and version per package, so crdgen moves other kinds to
// theirs. The rules are those of Karpenter's manifests, so that an object is valid for both or for neither. In
// addition each value of a requirement is validated, which Karpenter's manifests only appear to do.
//
// Usage: go run ./internal/crdgen <directory>
package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

const controllerGen = "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0"

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: crdgen <directory>")
	}
	if err := generate(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func generate(dir string) error {
	raw, err := os.MkdirTemp("", "crdgen")
	if err != nil {
		return fmt.Errorf("making room for the raw manifests: %w", err)
	}
	defer func() { _ = os.RemoveAll(raw) }()
	generate := exec.Command("go", "run", controllerGen, "crd", "paths=.", "output:crd:dir="+raw)
	generate.Stdout, generate.Stderr = os.Stdout, os.Stderr
	if err := generate.Run(); err != nil {
		return fmt.Errorf("running controller-gen: %w", err)
	}
	for _, m := range manifests() {
		if err := m.write(raw, dir); err != nil {
			return err
		}
	}
	return nil
}

// manifest is one custom resource: controller-gen's file, the final file, and the edits between them.
type manifest struct {
	raw, file string // file names before and after
	edits     []edit
}

func (m manifest) write(from, to string) error {
	text, err := os.ReadFile(filepath.Join(from, m.raw))
	if err != nil {
		return fmt.Errorf("reading what controller-gen wrote: %w", err)
	}
	out, err := m.apply(text)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, m.file), out, 0o644); err != nil {
		return fmt.Errorf("writing a manifest: %w", err)
	}
	return nil
}

func (m manifest) apply(text []byte) ([]byte, error) {
	var crd node
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return nil, fmt.Errorf("reading manifest %s: %w", m.raw, err)
	}
	for _, e := range m.edits {
		if err := e(crd); err != nil {
			return nil, fmt.Errorf("completing manifest %s: %w", m.file, err)
		}
	}
	out, err := yaml.Marshal(crd)
	if err != nil {
		return nil, fmt.Errorf("writing manifest %s: %w", m.file, err)
	}
	return out, nil
}
