package rules

import (
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestStampedVariables checks that the linker's flags name existing variables: the linker
// ignores others, and `joist version` would not know its version.
func TestStampedVariables(t *testing.T) {
	const stamped = "shared/host/build"
	command := exec.CommandContext(t.Context(), "bash", "-c", `set -euo pipefail; source .ci/flags; echo "$LDFLAGS"`)
	command.Dir = root
	flags, err := command.Output()
	if err != nil {
		t.Fatalf("reading .ci/flags: %v", err)
	}
	source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, stamped, "build.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(` -X (\S+)\.(\w+)=`).FindAllSubmatch(flags, -1)
	if len(found) != 3 {
		t.Errorf("%s sets %d variables, want version, commit and date", flags, len(found))
	}
	for _, stamp := range found {
		if path := string(stamp[1]); path != own(stamped) {
			t.Errorf("the linker sets a variable of package %s, want %s", path, own(stamped))
		}
		if name := string(stamp[2]); source.Scope.Lookup(name) == nil {
			t.Errorf("package %s has no variable %s", stamped, name)
		}
	}
}
