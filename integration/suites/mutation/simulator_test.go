package mutation_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/suites/mutation/mutants"
)

// TestSurvivorsInSimulator runs seeds of the simulator with each mutant whose identity matches the regular expression
// JOIST_SIMULATED, and prints which promise breaks first. JOIST_SEEDS is the number of seeds, 20 by default. It is for
// mutants that the packages' tests do not kill. The page lists the promise that a seed broke.
func TestSurvivorsInSimulator(t *testing.T) {
	text := os.Getenv("JOIST_SIMULATED")
	if text == "" {
		t.Skip("JOIST_SIMULATED selects no mutant")
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		t.Fatalf("JOIST_SIMULATED is not a regular expression: %v", err)
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, module := range modules {
		source, err := mutants.Load(root, module)
		if err != nil {
			t.Fatal(err)
		}
		overlay, err := source.WriteOverlay(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range source.Mutants {
			if !pattern.MatchString(m.String()) {
				continue
			}
			found++
			env := []string{mutants.SelectedVariable + "=" + strconv.Itoa(m.Number), "JOIST_SEEDS=" + cmp.Or(os.Getenv("JOIST_SEEDS"), "20")}
			line, _ := runTests(t, root, overlay, "seed ", env, "-run", "^TestSeeds$", "-timeout", "30m", "./integration/suites/sim")
			fmt.Printf("simulator: %s: %s\n", m, cmp.Or(strings.TrimSpace(line), "no seed breaks a promise"))
		}
	}
	if found == 0 {
		t.Fatalf("JOIST_SIMULATED=%s matches no mutant", text)
	}
}
