package readme

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/integration/lint/repolint"
)

var (
	target  = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
	setting = regexp.MustCompile(`(?m)^([A-Z]+) \?=`)
	test    = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w*)\(`)
)

// Load reads the facts that commands are checked against.
func Load(root string, files []repolint.File) (Repository, error) {
	r := Repository{Root: root, Tests: map[string][]string{}, Outputs: map[string]bool{}}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return r, fmt.Errorf("reading the targets: %w", err)
	}
	r.Targets, r.Variables = named(target, string(makefile)), named(setting, string(makefile))
	for _, file := range files {
		if strings.HasSuffix(file.Path, "_test.go") {
			dir := filepath.Dir(file.Path)
			for _, name := range test.FindAllStringSubmatch(file.Text, -1) {
				r.Tests[dir] = append(r.Tests[dir], name[1])
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "infra/stack/testdata/fresh.template.json"))
	if err != nil {
		return r, fmt.Errorf("reading the outputs: %w", err)
	}
	stack, err := template.Parse(text)
	if err != nil {
		return r, err
	}
	for name := range maps.Keys(stack.Outputs) {
		r.Outputs[name] = true
	}
	r.Kinds, err = kinds(root)
	return r, err
}

func named(pattern *regexp.Regexp, text string) map[string]bool {
	all := map[string]bool{}
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		all[found[1]] = true
	}
	return all
}

// kinds returns the built-in kinds that pages use, and those of the CRDs.
func kinds(root string) (map[string]bool, error) {
	all := map[string]bool{}
	for name := range strings.FieldsSeq("deployment deployments pod pods node nodes lease leases event events configmap replicasets statefulsets " +
		"daemonsets jobs cronjobs csinodes pvc pv storageclasses namespaces priorityclasses crd secret") {
		all[name] = true
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy/charts/joist-crd/files/*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("finding the definitions: %w", err)
	}
	if len(files) == 0 {
		return nil, errors.New("the chart of the definitions has none")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the definitions: %w", err)
		}
		var definition struct {
			Spec struct {
				Names struct{ Plural, Singular string }
			}
		}
		if err := yaml.Unmarshal(text, &definition); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		all[definition.Spec.Names.Plural], all[definition.Spec.Names.Singular] = true, true
	}
	return all, nil
}
