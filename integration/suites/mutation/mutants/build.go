package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// binary is a compiled test binary with all mutants of a module.
type binary struct {
	// dir is the directory of the package that it tests, relative to the root of the repository.
	dir  string
	file string
	// flags are flags for the binary's random tests, which must draw the same values in each run.
	flags []string
}

// randomFlags make tests with pgregory.net/rapid draw the same values in each run. A failure is not made smaller, because
// only that it fails matters.
var randomFlags = []string{"-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1ms"}

// build compiles the tests of the directories, at most workers at once.
func (s MutatedCode) build(ctx context.Context, into string, dirs []string, workers int) ([]binary, error) {
	overlay, err := s.WriteOverlay(into)
	if err != nil {
		return nil, err
	}
	binaries := make([]binary, len(dirs))
	var group errgroup.Group
	group.SetLimit(workers)
	for i, dir := range dirs {
		group.Go(func() error {
			file := filepath.Join(into, strings.ReplaceAll(dir, "/", "_")+".test")
			command := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", file, ".")
			command.Dir = filepath.Join(s.root, dir)
			command.Env = append(os.Environ(), "GOWORK=off")
			if printed, err := command.CombinedOutput(); err != nil {
				return fmt.Errorf("building the tests of %s with mutants (does integration/suites/mutation/mutants write code that compiles?): %w\n%s", dir, err, printed)
			}
			if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
				return nil // The package has no tests.
			}
			binaries[i] = binary{dir: dir, file: file}
			usage, _ := exec.CommandContext(ctx, file, "-help").CombinedOutput()
			if strings.Contains(string(usage), "-rapid.seed") {
				binaries[i].flags = randomFlags
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(binaries, func(b binary) bool { return b.file == "" }), nil
}

// WriteOverlay writes the changed files below a directory and returns the overlay file for the go command.
func (s MutatedCode) WriteOverlay(into string) (string, error) {
	replace := map[string]string{}
	for name, text := range s.files {
		relative, err := filepath.Rel(s.root, name)
		if err != nil {
			return "", fmt.Errorf("locating %s: %w", name, err)
		}
		file := filepath.Join(into, "source", relative)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return "", fmt.Errorf("writing the mutants of %s: %w", name, err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("writing the mutants of %s: %w", name, err)
		}
		replace[name] = file
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("encoding the overlay: %w", err)
	}
	file := filepath.Join(into, "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return "", fmt.Errorf("writing the overlay: %w", err)
	}
	return file, nil
}

// testsOf returns the directories of the packages whose tests test the package.
func (s MutatedCode) testsOf(dir string) []string {
	if by := s.Module.TestedBy; by != "" && dir != by {
		return []string{dir, by}
	}
	return []string{dir}
}
