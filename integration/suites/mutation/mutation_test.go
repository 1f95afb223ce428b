// Package mutation plants known bugs in the services, one at a time, and demands
// that the simulator finds each of them, or a test of the service where no seed of the
// simulator comes to it. A simulator that has never found anything proves nothing.
//
// A bug is a piece of source and what to write instead; the go command builds
// the simulator with that file overlaid, so that nothing of it is ever in the
// product.
package mutation_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// bug is a mistake that somebody could make.
type bug struct {
	name string
	// file is relative to the repository's root.
	file     string
	from, to string
	// promise is a part of the violation that finds it; the name of the test where one is
	// named.
	promise string
	// in is the package whose test named by promise finds it, in place of the simulator's
	// seeds: the bug needs two replicas, or a person, at one moment that no seed hits.
	in string
	// seed is the seed of the simulator that is played before the others, for a bug that few
	// seeds find. Where it no longer finds the bug, the test says which seed does.
	seed int
}

// maxSeeds bounds the seeds that are played for one bug. The simulator stops at the first that
// finds it.
const maxSeeds = 400

// TestBugsFollowTheCode holds every bug to the source that it changes, in no time: code
// that moves away from its bug is noticed before a simulator is built.
func TestBugsFollowTheCode(t *testing.T) {
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			_ = b.planted(t, "../../..")
		})
	}
}

func TestPlantedBugsAreFound(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			fmt.Printf("planted: %-28s found: %s\n", b.name, findBug(t, root, b))
		})
	}
}

// findBug returns the line that reports the bug, and fails the test where none does.
func findBug(t *testing.T, root string, b bug) string {
	t.Helper()
	overlay := b.writeOverlay(t, root)
	var line, out string
	switch {
	case b.in != "":
		line, out = runTests(t, root, overlay, "--- FAIL: "+b.promise, nil, "-run", "^"+b.promise+"$", b.in)
	case b.seed > 0:
		line, _ = runSeeds(t, root, overlay, b.promise, "JOIST_SEED="+strconv.Itoa(b.seed))
		if line != "" {
			break
		}
		fmt.Printf("planted: %-28s is no longer found by seed %d, trying %d seeds\n", b.name, b.seed, maxSeeds)
		fallthrough
	default:
		line, out = runSeeds(t, root, overlay, b.promise, "JOIST_SEEDS="+strconv.Itoa(maxSeeds))
	}
	if line == "" {
		t.Fatalf("the bug %s breaks no promise %q. The end of what the run printed:\n%s", b.name, b.promise, tail(out, 30))
	}
	return strings.TrimSpace(line)
}

// planted is the source of the bug's file with the bug in it.
func (b bug) planted(t *testing.T, root string) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, b.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), b.from); n != 1 {
		t.Fatalf("%s has the piece to change %d times, not once: the bug must follow the code\n%s", b.file, n, b.from)
	}
	return strings.Replace(string(source), b.from, b.to, 1)
}

// writeOverlay writes the bug's source, and the file that tells the go command to build it.
func (b bug) writeOverlay(t *testing.T, root string) string {
	t.Helper()
	file := filepath.Join(root, b.file)
	mutant := filepath.Join(t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(mutant, []byte(b.planted(t, root)), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutant}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlayFile
}

// runSeeds plays the simulator's seeds until one breaks the promise.
func runSeeds(t *testing.T, root, overlay, promise, seeds string) (line, out string) {
	t.Helper()
	env := []string{"JOIST_SEED=", seeds, "JOIST_UNTIL=" + promise}
	return runTests(t, root, overlay, " "+promise+": ", env, "-run", "^TestSeeds$", "./integration/suites/sim")
}

// runTests runs go test with the overlay and returns the first line of its output that
// contains the finding, if any, and the output.
func runTests(t *testing.T, root, overlay, finding string, env []string, args ...string) (line, out string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"test", "-count=1", "-overlay", overlay}, args...)...)
	command.Dir = root
	command.Env = append(os.Environ(), env...)
	printed, err := command.CombinedOutput()
	out = string(printed)
	if strings.Contains(out, "[build failed]") {
		t.Fatalf("the bug does not build:\n%s", tail(out, 30))
	}
	if err == nil {
		return "", out
	}
	return firstLine(out, finding), out
}

func firstLine(text, part string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
