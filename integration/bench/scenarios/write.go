package scenarios

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// WriteTypes writes the file of instance types that scenarios in the directory
// refer to.
func WriteTypes(dir string) error {
	types, err := Types()
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, TypesFile), types)
}

// Write writes the scenario as <name>.json and returns the path.
func (s Scenario) Write(dir string) (string, error) {
	path := filepath.Join(dir, s.Name+".json")
	return path, write(path, s)
}

func write(path string, document any) error {
	text, err := json.Marshal(document)
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
