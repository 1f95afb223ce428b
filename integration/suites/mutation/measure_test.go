package mutation_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
)

const (
	// findsPerBug is how many seeds must find a bug before its measurement ends.
	findsPerBug = 5
	// firstMeasuredSeed is apart from the seeds that people run, for which some bugs were chosen.
	firstMeasuredSeed = 1001
	measuredFile      = "testdata/measured.json"
	measuredPage      = "../../../deploy/docs/planted-bugs.md"
)

// bugMeasurement is how many seeds were run for a bug, beginning with firstMeasuredSeed, and which of them found it.
type bugMeasurement struct {
	Seeds int     `json:"seeds"`
	Found []int64 `json:"found"`
}

// seedCounts returns how many seeds each find needed, sorted. If there are fewer than findsPerBug, the last is that of the seeds
// after the last find, which found nothing, and isOpen is true.
func (m bugMeasurement) seedCounts() (counts []int, isOpen bool) {
	last := int64(firstMeasuredSeed - 1)
	for _, seed := range m.Found {
		counts = append(counts, int(seed-last))
		last = seed
	}
	if rest := int64(firstMeasuredSeed+m.Seeds-1) - last; len(m.Found) < findsPerBug && rest > 0 {
		counts, isOpen = append(counts, int(rest)), true
	}
	slices.Sort(counts)
	return counts, isOpen
}

// TestMeasureBugs measures how many seeds find each bug whose name matches JOIST_MEASURE_BUGS, a regular expression, and runs
// at most JOIST_MEASURE_SEEDS seeds (100) for each. With -update it writes the results and the page.
func TestMeasureBugs(t *testing.T) {
	pattern := os.Getenv("JOIST_MEASURE_BUGS")
	if pattern == "" {
		t.Skip("JOIST_MEASURE_BUGS is not set (use a regular expression, or . for all bugs)")
	}
	chosen, err := regexp.Compile(pattern)
	if err != nil {
		t.Fatalf("JOIST_MEASURE_BUGS is not a regular expression: %v", err)
	}
	most := os.Getenv("JOIST_MEASURE_SEEDS")
	if most == "" {
		most = "100"
	}
	all := readMeasured(t)
	for _, b := range allBugs {
		if b.in != "" || !chosen.MatchString(b.name) {
			continue
		}
		m := measureBug(t, b, most)
		fmt.Printf("mutation: %-36s found by %v of %d seeds\n", b.name, m.Found, m.Seeds)
		all[b.name] = m
		text, err := json.MarshalIndent(all, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, measuredFile, strings.TrimSpace(string(text))+"\n")
	}
	golden.Compare(t, measuredPage, formatMeasured(all))
}

func readMeasured(t *testing.T) map[string]bugMeasurement {
	t.Helper()
	out := map[string]bugMeasurement{}
	text, err := os.ReadFile(measuredFile)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// measureBug runs seeds until findsPerBug of them have found the bug, or most seeds have run.
func measureBug(t *testing.T, b bug, most string) (m bugMeasurement) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"JOIST_SEED=", "JOIST_SAMPLE=" + strconv.Itoa(firstMeasuredSeed), "JOIST_SEEDS=" + most, "JOIST_UNTIL=" + b.promise, "JOIST_FINDS=" + strconv.Itoa(findsPerBug)}
	_, out := runTests(t, root, b.writeOverlay(t, root), " ", env, "-timeout", "100m", "-v", "-run", "^TestSeeds$", "./integration/suites/sim")
	line := firstLine(out, " broke the promise ")
	parts := regexp.MustCompile(`seeds \d+ to (\d+), of which \[(.*)\] broke`).FindStringSubmatch(line)
	if parts == nil {
		t.Fatalf("the run with the bug %s does not say which seeds found it:\n%s", b.name, tail(out, 30))
	}
	last, _ := strconv.Atoi(parts[1]) // The expression matches digits only.
	m.Seeds, m.Found = last-firstMeasuredSeed+1, []int64{}
	for field := range strings.FieldsSeq(parts[2]) {
		seed, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		m.Found = append(m.Found, seed)
	}
	return m
}

// TestMeasuredBugsArePlanted requires that the page is what the measurements generate, and that it names only planted bugs.
func TestMeasuredBugsArePlanted(t *testing.T) {
	all := readMeasured(t)
	for name := range all {
		if !slices.ContainsFunc(allBugs, func(b bug) bool { return b.name == name && b.in == "" }) {
			t.Errorf("%s has the bug %s, which no seed has to find; remove it there", measuredFile, name)
		}
	}
	golden.Compare(t, measuredPage, formatMeasured(all))
}
