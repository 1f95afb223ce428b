package planvalidator

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Read decodes a scenario from a file, which may be gzipped, and the instance
// types that it names beside it.
func Read(path string) (*Scenario, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the scenario: %w", err)
	}
	return Parse(text, func(name string) ([]byte, error) {
		return readFile(filepath.Join(filepath.Dir(path), name))
	})
}

// Parse decodes a scenario; beside reads a file that it names, and may be nil
// for a scenario with its instance types inline.
func Parse(text []byte, beside func(name string) ([]byte, error)) (*Scenario, error) {
	s := &Scenario{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("decoding the scenario: %w", err)
	}
	if s.InstanceTypesFile != "" {
		if beside == nil {
			return nil, fmt.Errorf("scenario %s keeps its instance types in %s, which is not at hand", s.Name, s.InstanceTypesFile)
		}
		types, err := beside(s.InstanceTypesFile)
		if err != nil {
			return nil, fmt.Errorf("reading the instance types of scenario %s: %w", s.Name, err)
		}
		if err := json.Unmarshal(types, &s.InstanceTypes); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", s.InstanceTypesFile, err)
		}
	}
	if err := s.complete(); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return s, nil
}

func readFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return text, err
	}
	from, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", path, err)
	}
	return io.ReadAll(from)
}
