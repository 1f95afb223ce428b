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

// ReadScenario decodes a scenario, which may be gzipped, and its file of instance types.
func ReadScenario(path string) (*Scenario, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the scenario: %w", err)
	}
	return ParseScenario(text, func(name string) ([]byte, error) {
		return readFile(filepath.Join(filepath.Dir(path), name))
	})
}

// ParseScenario decodes a scenario. readTypes reads the file of instance types and may be
// nil if they are inline.
func ParseScenario(text []byte, readTypes func(name string) ([]byte, error)) (*Scenario, error) {
	s := &Scenario{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("decoding the scenario: %w", err)
	}
	if s.InstanceTypesFile != "" {
		if readTypes == nil {
			return nil, fmt.Errorf("scenario %s names the file of instance types %s, which cannot be read here", s.Name, s.InstanceTypesFile)
		}
		types, err := readTypes(s.InstanceTypesFile)
		if err != nil {
			return nil, fmt.Errorf("reading the instance types of scenario %s: %w", s.Name, err)
		}
		if err := json.Unmarshal(types, &s.InstanceTypes); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", s.InstanceTypesFile, err)
		}
	}
	if err := s.completeScenario(); err != nil {
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
