// Package planted plants known bugs in the services, one at a time, and demands
// that the simulator finds each of them, or a test of the service where no seed of the
// simulator comes to it. A simulator that has never found anything proves nothing.
//
// A bug is a piece of source and what to write instead; the go command builds
// the simulator with that file overlaid, so that nothing of it is ever in the
// product.
package planted_test

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
	// seed is the one seed of the simulator that is played, in place of the first 60, for a bug
	// that few seeds find.
	seed int
}

// run gives the arguments of go test that play the bug, and what a finding begins with.
func (b bug) run() (args []string, finding string) {
	if b.in != "" {
		return []string{"-run", "^" + b.promise + "$", b.in}, "--- FAIL: " + b.promise
	}
	return []string{"-run", "TestSeeds", "./integration/sim"}, b.promise
}

// TestBugsFollowTheCode holds every bug to the source that it changes, in no time: code
// that moves away from its bug is noticed before a simulator is built.
func TestBugsFollowTheCode(t *testing.T) {
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			_ = b.planted(t, "../..")
		})
	}
}

func TestPlantedBugsAreFound(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			out := play(t, root, b)
			_, finding := b.run()
			line := firstLine(out, finding)
			if line == "" {
				t.Fatalf("no seed broke the promise %q. The end of what it printed:\n%s", b.promise, tail(out, 30))
			}
			fmt.Printf("planted: %-28s found: %s\n", b.name, strings.TrimSpace(line))
		})
	}
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

// play builds the simulator, or the bug's own test, with the bug in it and runs it: of the
// simulator some seeds.
func play(t *testing.T, root string, b bug) string {
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
	args, _ := b.run()
	one := ""
	if b.seed > 0 {
		one = strconv.Itoa(b.seed)
	}
	command := exec.CommandContext(t.Context(), "go", append([]string{"test", "-count=1", "-overlay", overlayFile}, args...)...)
	command.Dir = root
	command.Env = append(os.Environ(), "JOIST_SEEDS=60", "JOIST_SEED="+one, "JOIST_FIRST=1")
	out, err := command.CombinedOutput()
	if err == nil {
		t.Fatalf("every promise held with the bug planted:\n%s", tail(string(out), 30))
	}
	if strings.Contains(string(out), "[build failed]") {
		t.Fatalf("the bug does not build:\n%s", tail(string(out), 30))
	}
	return string(out)
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
