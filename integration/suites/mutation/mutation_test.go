// Package mutation adds known bugs to the services, one at a time, and requires that the simulator finds each, or
// a test of the service if no seed can. A bug replaces a piece of source; the go command builds with that file
// overlaid, so the bug is never part of the product.
package mutation_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// bug is one known mistake.
type bug struct {
	name string
	// file is relative to the repository's root.
	file     string
	from, to string
	// promise is the promise that the bug breaks, or the name of the test that finds it.
	promise string
	// in is the package of the test that finds the bug instead of the simulator, because it needs two replicas or
	// a user at one moment that no seed reaches.
	in string
	// seed is the seed that is run first, for a bug that few seeds find. If it no longer finds the bug, the test
	// names a seed that does.
	seed int
}

// maxSeeds is the number of seeds that are run for one bug. The simulator stops at the first that finds it.
const maxSeeds = 400

// bugsInSample is the number of bugs that a sample has.
const bugsInSample = 12

// TestBugsFollowTheCode requires that the source which each bug replaces exists, without building anything.
func TestBugsFollowTheCode(t *testing.T) {
	for _, b := range allBugs {
		t.Run(b.name, func(t *testing.T) {
			_ = b.planted(t, "../../..")
		})
	}
}

// TestBugsAreFound plants every bug, or the twelve that the number JOIST_SAMPLE draws.
func TestBugsAreFound(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range drawBugs(t) {
		t.Run(b.name, func(t *testing.T) {
			fmt.Printf("mutation: %-28s found: %s\n", b.name, findBug(t, root, b))
		})
	}
}

// drawBugs returns the bugs to plant.
func drawBugs(t *testing.T) []bug {
	t.Helper()
	text := os.Getenv("JOIST_SAMPLE")
	if text == "" {
		return allBugs
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("JOIST_SAMPLE=%q is not a number: %v", text, err)
	}
	drawn := slices.Clone(allBugs)
	rand.New(rand.NewPCG(number, 0)).Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	fmt.Printf("mutation: %d of %d planted bugs\n", bugsInSample, len(allBugs))
	return drawn[:bugsInSample]
}

// findBug returns the line that reports the bug, and fails the test if none exists.
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
		fmt.Printf("mutation: %-28s is no longer found by seed %d, trying %d seeds\n", b.name, b.seed, maxSeeds)
		fallthrough
	default:
		line, out = runSeeds(t, root, overlay, b.promise, "JOIST_SEEDS="+strconv.Itoa(maxSeeds))
	}
	if line == "" {
		t.Fatalf("the bug %s breaks no promise %q. The end of what the run printed:\n%s", b.name, b.promise, tail(out, 30))
	}
	return strings.TrimSpace(line)
}

// planted returns the source of the bug's file with the bug.
func (b bug) planted(t *testing.T, root string) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, b.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), b.from); n != 1 {
		t.Fatalf("%s has the source of the bug %d times, want 1: update the bug\n%s", b.file, n, b.from)
	}
	return strings.Replace(string(source), b.from, b.to, 1)
}

// writeOverlay writes the source with the bug and the overlay file for the go command.
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

// runSeeds runs the simulator until a seed breaks the promise.
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
