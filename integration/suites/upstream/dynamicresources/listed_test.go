package dynamicresources_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	title = regexp.MustCompile(`\bIt\("([^"]*)"`)
	// initializationTitle is a title in a file that has specs without devices, too.
	initializationTitle = regexp.MustCompile(`\bIt\("([^"]* \([a-e]2?\))"`)
)

// testdata/specs.txt names a test of Joist for each spec of Karpenter's provisioning, consolidation and
// initialization with devices.
func TestListedSpecs(t *testing.T) {
	text, err := os.ReadFile("testdata/specs.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		spec, test, found := strings.Cut(strings.TrimSpace(line), "\t")
		if !found {
			continue
		}
		listed[spec] = true
		folder, name, _ := strings.Cut(test, " ")
		function, sub, _ := strings.Cut(name, "/")
		if source := readTests(t, folder); !strings.Contains(source, "func "+function+"(") || !strings.Contains(source, `"`+sub+`"`) && sub != "" {
			t.Errorf("%s has no test %s, which is to show %q", folder, name, spec)
		}
	}
	controllers := filepath.Join(findFolder(t), "..", "..", "controllers")
	for file, title := range map[string]*regexp.Regexp{
		"provisioning/dra_test.go": title, "disruption/consolidation_dra_test.go": title, "nodeclaim/lifecycle/suite_test.go": initializationTitle,
	} {
		source, err := os.ReadFile(filepath.Join(controllers, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range title.FindAllStringSubmatch(string(source), -1) {
			if !listed[match[1]] {
				t.Errorf("testdata/specs.txt does not list the spec %q of %s", match[1], file)
			}
			delete(listed, match[1])
		}
	}
	for spec := range listed {
		t.Errorf("Karpenter has no spec %q", spec)
	}
}

// readTests returns the source of the tests of a folder.
func readTests(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
	return out.String()
}
