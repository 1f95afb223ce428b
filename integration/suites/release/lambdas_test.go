package release

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
)

// TestFunctionsAreBuilt runs `make lambdas` and checks that each function is a static executable for arm64.
func TestFunctionsAreBuilt(t *testing.T) {
	if os.Getenv("JOIST_RELEASE") == "" {
		t.Skip("JOIST_RELEASE is not set: it builds the functions for another architecture")
	}
	build := exec.CommandContext(t.Context(), "make", "lambdas")
	build.Dir = testbed.Root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make lambdas: %v\n%s", err, out)
	}
	for _, service := range []string{"planner", "disruption", "interruption", "catalog", "launcher", "spotrole"} {
		file, err := elf.Open(filepath.Join(testbed.Root, "bin", "lambda", service, "bootstrap"))
		if err != nil {
			t.Error(err)
			continue
		}
		if libraries, err := file.ImportedLibraries(); err != nil || file.Machine != elf.EM_AARCH64 || len(libraries) > 0 {
			t.Errorf("the function %s is for %s and needs %v (%v)", service, file.Machine, libraries, err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}
