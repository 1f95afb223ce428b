package contest

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/integration/bench/scenarios"
)

// Sample is a scenario in a file.
type Sample struct {
	// Name is the scenario's name.
	Name string
	// Path is an uncompressed file that planners can read, with its types in the same
	// folder.
	Path string
	// Kind is the first part of the name; Pods is the number of pending pods.
	Kind string
	Pods int
	// Nodes is the number of existing nodes.
	Nodes int
}

// outline is the part of a scenario that determines its Sample.
type outline struct {
	Name              string          `json:"name"`
	InstanceTypesFile string          `json:"instanceTypesFile"`
	InstanceTypes     json.RawMessage `json:"instanceTypes"`
	NodePools         json.RawMessage `json:"nodePools"`
	PodGroups         []struct {
		Count int `json:"count"`
	} `json:"podGroups"`
	Pods  []json.RawMessage `json:"pods"`
	Nodes []json.RawMessage `json:"nodes"`
}

// Samples finds the scenarios in a directory, sorted by kind and size. It unpacks
// compressed ones into scratch. Scenarios without pending pods are returned as fleet:
// they have nodes to consolidate.
func Samples(dir, scratch string) (plain, fleet []Sample, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json*"))
	if err != nil {
		return nil, nil, fmt.Errorf("listing the scenarios in %s: %w", dir, err)
	}
	var found []Sample
	for _, path := range paths {
		one, isScenario, err := readSample(path, scratch)
		switch {
		case err != nil:
			return nil, nil, err
		case !isScenario:
		default:
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Pods, b.Pods), cmp.Compare(a.Nodes, b.Nodes))
	})
	plain, fleet = fleets(found)
	return plain, fleet, nil
}

// rank returns the position of a kind among the generated kinds; unknown kinds are last.
func rank(kind string) int {
	kinds := scenarios.Kinds()
	if i := slices.IndexFunc(kinds, func(k scenarios.Kind) bool { return k.Name == kind }); i >= 0 {
		return i
	}
	return len(kinds)
}

func readSample(path, scratch string) (one Sample, isScenario bool, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Sample{}, false, fmt.Errorf("reading a scenario: %w", err)
	}
	if strings.HasSuffix(path, ".gz") {
		if text, err = unpack(path); err != nil {
			return Sample{}, false, err
		}
	}
	o, isScenario := outlined(text)
	if !isScenario {
		return Sample{}, false, nil
	}
	one = Sample{Name: o.Name, Path: path, Pods: len(o.Pods), Nodes: len(o.Nodes)}
	one.Kind, _, _ = strings.Cut(o.Name, "-")
	for _, g := range o.PodGroups {
		one.Pods += g.Count
	}
	if strings.HasSuffix(path, ".gz") {
		one.Path, err = settle(text, path, o.InstanceTypesFile, scratch)
	}
	return one, true, err
}

// outlined parses a scenario. isScenario is false for the list of types and for other
// files.
func outlined(text []byte) (o outline, isScenario bool) {
	err := json.Unmarshal(text, &o)
	return o, err == nil && o.NodePools != nil
}

func unpack(path string) ([]byte, error) {
	packed, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening a packed scenario: %w", err)
	}
	defer packed.Close()
	reader, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", path, err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", path, err)
	}
	return text, nil
}

// settle writes an unpacked scenario, and a link to its types in the same folder.
func settle(text []byte, path, types, scratch string) (string, error) {
	to := filepath.Join(scratch, strings.TrimSuffix(filepath.Base(path), ".gz"))
	if err := os.WriteFile(to, text, 0o600); err != nil {
		return "", fmt.Errorf("writing an unpacked scenario: %w", err)
	}
	if types == "" {
		return to, nil
	}
	from, err := filepath.Abs(filepath.Join(filepath.Dir(path), types))
	if err != nil {
		return "", fmt.Errorf("finding the types of %s: %w", path, err)
	}
	if err := os.Symlink(from, filepath.Join(scratch, types)); err != nil && !os.IsExist(err) {
		return "", fmt.Errorf("linking the types for %s: %w", to, err)
	}
	return to, nil
}
