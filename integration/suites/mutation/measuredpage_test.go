package mutation_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const measuredIntro = `# Planted bugs

This page is generated: in ` + "`integration`" + `, ` + "`JOIST_MEASURE_BUGS=. go test ./suites/mutation -run TestMeasureBugs -timeout 20h -update`" + `, or for one bug
` + "`JOIST_MEASURE_BUGS=^token-random$`" + `. ` + "`JOIST_MEASURE_SEEDS`" + ` is the largest number of seeds for one bug.

A planted bug is a mistake that the protocol exists to prevent. ` + "`make planted`" + ` adds each to the source, alone, and the simulator or a test must find
it. There are %d: %d that seeds find, and %d that a test finds, because they need two replicas or a user at one moment that few seeds reach.

## Bugs that seeds find

A measurement runs the seeds from %d on with the bug, until %d seeds have found it. The table has how many seeds each find needed: the median and the
most. A number with ≥ is that of a run that ended before the next find. %s

| bug | broken promise | finds | seeds run | median | most |
|---|---|--:|--:|--:|--:|
`

// formatMeasured returns the page.
func formatMeasured(all map[string]bugMeasurement) string {
	var rows, tests strings.Builder
	var medians []int
	seeds, tested := 0, 0
	worst, worstName := "", ""
	worstCount := 0
	for _, b := range allBugs {
		if b.in != "" {
			tested++
			fmt.Fprintf(&tests, "| %s | `%s` | %s |\n", b.name, b.promise, strings.TrimPrefix(b.in, "./"))
			continue
		}
		seeds++
		m, measured := all[b.name]
		if !measured {
			fmt.Fprintf(&rows, "| %s | %s | not measured | | | |\n", b.name, b.promise)
			continue
		}
		counts, isOpen := m.seedCounts()
		median := counts[(len(counts)-1)/2]
		medians = append(medians, median)
		most := formatCount(counts, len(counts)-1, isOpen, m)
		if last := counts[len(counts)-1]; last > worstCount {
			worstCount, worst, worstName = last, most, b.name
		}
		fmt.Fprintf(&rows, "| %s | %s | %d | %d | %s | %s |\n", b.name, b.promise, len(m.Found), m.Seeds, formatCount(counts, (len(counts)-1)/2, isOpen, m), most)
	}
	summary := "No bug is measured yet."
	if len(medians) > 0 {
		slices.Sort(medians)
		summary = fmt.Sprintf("Of %d measured bugs, half have a median of at most %d; the worst case is %s, with %s seeds for one find.", len(medians), medians[(len(medians)-1)/2], worstName, worst)
	}
	return fmt.Sprintf(measuredIntro, len(allBugs), seeds, tested, firstMeasuredSeed, findsPerBug, summary) + rows.String() +
		"\n## Bugs that a test finds\n\n| bug | test | package |\n|---|---|---|\n" + tests.String()
}

// formatCount formats one of the sorted counts. That of the seeds after the last find is a lower bound.
func formatCount(counts []int, at int, isOpen bool, m bugMeasurement) string {
	rest := m.Seeds
	if n := len(m.Found); n > 0 {
		rest = firstMeasuredSeed + m.Seeds - 1 - int(m.Found[n-1])
	}
	if isOpen && counts[at] == rest {
		return fmt.Sprintf("≥ %d", counts[at])
	}
	return strconv.Itoa(counts[at])
}

func TestSeedCounts(t *testing.T) {
	for name, test := range map[string]struct {
		m      bugMeasurement
		counts []int
		isOpen bool
	}{
		"never found":            {bugMeasurement{Seeds: 40}, []int{40}, true},
		"found five times":       {bugMeasurement{Seeds: 12, Found: []int64{1001, 1003, 1004, 1010, 1012}}, []int{1, 1, 2, 2, 6}, false},
		"found once":             {bugMeasurement{Seeds: 10, Found: []int64{1003}}, []int{3, 7}, true},
		"found by the last seed": {bugMeasurement{Seeds: 10, Found: []int64{1010}}, []int{10}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if counts, isOpen := test.m.seedCounts(); !slices.Equal(counts, test.counts) || isOpen != test.isOpen {
				t.Errorf("got %v, %v, want %v, %v", counts, isOpen, test.counts, test.isOpen)
			}
		})
	}
}
