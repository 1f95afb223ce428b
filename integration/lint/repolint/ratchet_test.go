package repolint

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// update lowers the allowed counts in testdata to the real ones. It never raises them.
var update = flag.Bool("update", false, "lower the allowed counts in testdata")

// slack is the maximum difference between an allowed count and the real one.
const slack = 50

// readCounts reads lines with a name and a number.
func readCounts(t *testing.T, path string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var name string
		var n int
		if _, err := fmt.Sscan(line, &name, &n); err != nil {
			t.Fatalf("%s: reading %q: %v", path, line, err)
		}
		counts[name] = n
	}
	return counts
}

// lowerCounts writes the smaller of both counts of each name, and omits counts below
// least.
func lowerCounts(t *testing.T, path string, allowed, real map[string]int, least int) {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		if n := min(allowed[name], real[name]); n >= least {
			fmt.Fprintf(&b, "%s %d\n", name, n)
		}
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestMarkerWords fails if there are more words that make prose hard to read.
func TestMarkerWords(t *testing.T) {
	const path = "testdata/wordcounts.txt"
	files, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("testdata/words.txt")
	if err != nil {
		t.Fatal(err)
	}
	words, err := ReadWords(string(list))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]Finding{"go": MarkedGo(files, words), "docs": MarkedDocs(files, words)}
	allowed, real := readCounts(t, path), map[string]int{}
	for kind, findings := range found {
		real[kind] = len(findings)
	}
	if *update {
		lowerCounts(t, path, allowed, real, 0)
		return
	}
	for kind, findings := range found {
		switch n := len(findings); {
		case n > allowed[kind]:
			t.Errorf("%s: %d marker words, and %s allows %d; in the lines that were added:", kind, n, path, allowed[kind])
			for _, finding := range recent(t, findings) {
				t.Error(finding)
			}
		case n < allowed[kind]-slack:
			t.Errorf("%s: %d marker words, and %s allows %d (try: go test ./lint/repolint -update)", kind, n, path, allowed[kind])
		}
	}
}

// recent returns the findings in uncommitted lines, else those of the last commit, else
// those since the base; without history the first findings.
func recent(t *testing.T, findings []Finding) []Finding {
	t.Helper()
	const most = 40
	if base := Base("../../.."); base != "" {
		for _, since := range []string{"HEAD", "HEAD~1", base} {
			added, err := AddedLines("../../..", since)
			if err != nil {
				t.Fatal(err)
			}
			in := slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return !added[fmt.Sprintf("%s:%d", f.Path, f.Line)] })
			if len(in) > 0 {
				return in[:min(len(in), most)]
			}
		}
	}
	return findings[:min(len(findings), most)]
}

// TestTypeNames fails if an exported type name gets another meaning.
func TestTypeNames(t *testing.T) {
	const path = "testdata/typenames.txt"
	files, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	shared := SharedTypeNames(files)
	allowed, real := readCounts(t, path), map[string]int{}
	for name, dirs := range shared {
		real[name] = len(dirs)
	}
	if *update {
		lowerCounts(t, path, allowed, real, 2)
		return
	}
	surplus := 0
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		surplus += max(0, allowed[name]-cmp.Or(real[name], 1))
	}
	if surplus > slack {
		t.Errorf("%s allows %d declarations too many (try: go test ./lint/repolint -update)", path, surplus)
	}
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		if real[name] > max(1, allowed[name]) {
			t.Errorf("the type %s is declared in %s: choose a name with one meaning for the new one", name, strings.Join(shared[name], ", "))
		}
	}
}

// TestCommits checks that recent commits have a subject of at most 72 characters and a
// body.
func TestCommits(t *testing.T) {
	base := Base("../../..")
	if base == "" {
		t.Skip("this clone lacks the history that the check needs (try: git fetch --unshallow)")
	}
	log, err := Log("../../..", base)
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range Commits(log) {
		t.Error(finding)
	}
}
