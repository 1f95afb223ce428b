package mutants

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// row counts the mutants of a package.
type row struct {
	all, killed, listed, unlisted int
}

// FormatTable returns a table of results by package, for a terminal.
func FormatTable(results []RunResult, reasons map[string]string) string {
	rows := map[string]row{}
	for _, r := range results {
		n := rows[r.Mutant.Package]
		n.all++
		switch {
		case r.Killed:
			n.killed++
		case reasons[r.Mutant.String()] != "":
			n.listed++
		default:
			n.unlisted++
		}
		rows[r.Mutant.Package] = n
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-62s %8s %8s %8s %8s %7s\n", "package", "mutants", "killed", "listed", "survive", "killed")
	var sum row
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		n := rows[name]
		fmt.Fprintf(&b, "%-62s %8d %8d %8d %8d %7s\n", name, n.all, n.killed, n.listed, n.unlisted, formatShare(n.killed, n.all))
		sum = row{sum.all + n.all, sum.killed + n.killed, sum.listed + n.listed, sum.unlisted + n.unlisted}
	}
	fmt.Fprintf(&b, "%-62s %8d %8d %8d %8d %7s\n", "total", sum.all, sum.killed, sum.listed, sum.unlisted, formatShare(sum.killed, sum.all))
	return b.String()
}

func formatShare(part, all int) string {
	if all == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(all))
}

// pageIntro is the text before the table of the page.
const pageIntro = `# Mutation tests

This page is generated: in ` + "`integration`" + `, ` + "`JOIST_MUTANTS=all go test ./suites/mutation -run TestMutants -timeout 600m -update`" + `, or for the
row of one package ` + "`JOIST_MUTANTS='^shared/host/'`" + `. It shows how closely the tests check the packages that hold the protocol and the decisions.

A mutant is a copy of the source with one small change: ` + "`<`" + ` becomes ` + "`<=`" + `, a condition is negated, a constant grows by 1, or a call is
left out. A mutant is killed if a test of its package fails, or a test of the package that uses it: the service, or the solver for the
packing. A mutant that survives is a line that the tests do not check. Each survivor is listed with a reason in
[survivors.yaml](../../integration/suites/mutation/testdata/survivors.yaml); one that is not listed fails the run, and so does a listed one that a
test kills. The operators are those of gremlins and go-mutesting
([mutants.go](../../integration/suites/mutation/mutants/mutants.go)). Constants that are declared by ` + "`const`" + `, calls that write a log, and main packages
have no mutants.

| command | runs |
|---|---|
| ` + "`make mutants`" + ` | a sample of 100, drawn again for each run. The output states the seed, and ` + "`JOIST_MUTANTS_SEED`" + ` repeats it. ` + "`make prove`" + ` includes it |
| ` + "`JOIST_MUTANTS='^shared/cluster' make mutants`" + ` | the mutants whose names match the regular expression; of packages of which samples are checked, those of the samples |
| ` + "`JOIST_MUTANTS_FRESH=shared/planning/solver make mutants`" + ` | a sample of 100 mutants of the directory that no sample has. Record it with its number of killed mutants in ` + "`samples`" + ` ([generated_test.go](../../integration/suites/mutation/generated_test.go)) |
| ` + "`make mutants-all`" + ` | all of the table. ` + "`make prove-long`" + ` includes it |
| ` + "`JOIST_SIMULATED='^services/lifecycle/drift' go test ./suites/mutation -run TestSurvivorsInSimulator -v`" + `, in ` + "`integration`" + ` | 20 seeds of the simulator with each mutant that matches, for survivors that the tests cannot reasonably kill |

`

// samplesIntro is the text before the table of samples.
const samplesIntro = `
Some packages have too many mutants to run them all, so the table above has samples of them. For each survivor of a sample, a test was
written, code was deleted, or a reason was listed. So the table does not show how many of the other mutants the tests kill. The table
below does: its last column is the share of a sample that the tests killed on the day it was drawn, before anything was done about the
survivors.

| drawn from | mutants | drawn | killed by tests when drawn |
|---|--:|--:|--:|
`

// reasonColumns are the kinds of reasons in the order of the page's columns.
var reasonColumns = []string{"equivalent", "simulator", "log", "performance"}

// PageRow is a row of the page: what became of the mutants of a package.
type PageRow struct {
	All, Killed int
	// Listed counts the survivors in the order of reasonColumns.
	Listed [4]int
}

// CountRows counts the results by package.
func CountRows(results []RunResult, reasons map[string]string) map[string]PageRow {
	rows := map[string]PageRow{}
	for _, r := range results {
		n := rows[r.Mutant.Package]
		n.All++
		kind, _, _ := strings.Cut(reasons[r.Mutant.String()], ":")
		if r.Killed {
			n.Killed++
		} else if i := slices.Index(reasonColumns, kind); i >= 0 {
			n.Listed[i]++
		}
		rows[r.Mutant.Package] = n
	}
	return rows
}

// ReadRows returns the rows of a page by package.
func ReadRows(page string) map[string]PageRow {
	rows := map[string]PageRow{}
	for line := range strings.Lines(page) {
		var name string
		var n PageRow
		read, _ := fmt.Sscanf(line, "| %s | %d | %d | %d | %d | %d | %d |", &name, &n.All, &n.Killed, &n.Listed[0], &n.Listed[1], &n.Listed[2], &n.Listed[3])
		if read == 7 && name != totalRow {
			rows[name] = n
		}
	}
	return rows
}

const totalRow = "total"

// FormatPage returns the page of the documentation.
func FormatPage(rows map[string]PageRow, samples []DrawnSample) string {
	var b strings.Builder
	b.WriteString(pageIntro)
	b.WriteString("| package | mutants | killed by tests | equivalent | killed by the simulator | only text of logs | performance only | killed by tests |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	var total PageRow
	write := func(name string, n PageRow) {
		fmt.Fprintf(&b, "| %s | %d | %d |", name, n.All, n.Killed)
		for _, listed := range n.Listed {
			fmt.Fprintf(&b, " %d |", listed)
		}
		fmt.Fprintf(&b, " %s |\n", formatShare(n.Killed, n.All))
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		n := rows[name]
		write(name, n)
		total.All, total.Killed = total.All+n.All, total.Killed+n.Killed
		for i := range n.Listed {
			total.Listed[i] += n.Listed[i]
		}
	}
	write(totalRow, total)
	b.WriteString(formatSamples(samples))
	return b.String()
}

// formatSamples returns which samples the table has, and how many of their mutants were killed before their survivors were known.
func formatSamples(samples []DrawnSample) string {
	if len(samples) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(samplesIntro)
	for _, s := range samples {
		drawn, first := fmt.Sprintf("%d (seed %d)", len(s.Mutants), s.Seed), "not counted"
		if s.FirstKilled > 0 {
			first = formatShare(s.FirstKilled, s.Size)
		}
		if s.Size == 0 {
			drawn, first = "none of the rest", "–"
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s |\n", s.Dir, s.Of, drawn, first)
	}
	return b.String()
}
