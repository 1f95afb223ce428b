package mutants

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// RunResult is what the tests made of a mutant.
type RunResult struct {
	Mutant Mutant
	// Killed reports that a test failed or took too long. By names the package whose tests did.
	Killed bool
	By     string
	// Reached reports whether a test runs the changed code.
	Reached bool
}

// unit is one test, which is run with a mutant. took is its CPU time without a mutant.
type unit struct {
	binary  binary
	test    string
	took    time.Duration
	reached map[int]bool
}

const (
	// quickLimit is the total CPU time of tests that are run in one process. Slower tests are run alone, the slowest last.
	quickLimit = 250 * time.Millisecond
	// cpuSlack and slackFactor are how much more CPU time tests may take with a mutant, which an endless loop exceeds.
	cpuSlack    = 5 * time.Second
	slackFactor = 10
	// idleSlack is how much longer they may take in all, which only tests that wait exceed. It is long, because a busy machine
	// must not kill mutants.
	idleSlack = time.Minute
	// memoryLimit is the largest address space of a test binary in KiB, for mutants that allocate without end.
	memoryLimit = 6 << 20
)

// Run runs the tests of the mutants' packages with each of the mutants, at most workers at once. It fails if a test fails
// without a mutant.
func (s MutatedCode) Run(ctx context.Context, wanted []Mutant, workers int, report func(RunResult)) error {
	into, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return fmt.Errorf("making a directory for mutants: %w", err)
	}
	defer func() { _ = os.RemoveAll(into) }()
	binaries, err := s.build(ctx, into, s.testDirs(wanted), workers)
	if err != nil {
		return err
	}
	units, err := s.measure(ctx, into, binaries, workers)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(workers)
	var mutex sync.Mutex
	for _, m := range wanted {
		group.Go(func() error {
			result := s.runMutant(ctx, m, units)
			mutex.Lock()
			defer mutex.Unlock()
			report(result)
			return ctx.Err()
		})
	}
	return group.Wait()
}

// testDirs returns the directories of the packages that test the mutants.
func (s MutatedCode) testDirs(wanted []Mutant) []string {
	dirs := map[string]bool{}
	for _, m := range wanted {
		for _, dir := range s.testsOf(m.Package) {
			dirs[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

// measure runs the tests without a mutant, one by one, and returns which mutants they reach. Starting a test takes some ten
// milliseconds, which is less than what a single mutant saves that only quick tests reach.
func (s MutatedCode) measure(ctx context.Context, into string, binaries []binary, workers int) ([]unit, error) {
	var units []unit
	for _, b := range binaries {
		listed, err := exec.CommandContext(ctx, b.file, "-test.list", ".").Output()
		if err != nil {
			return nil, fmt.Errorf("listing the tests of %s: %w", b.dir, err)
		}
		for name := range strings.FieldsSeq(string(listed)) {
			if !strings.HasPrefix(name, "Benchmark") {
				units = append(units, unit{binary: b, test: name})
			}
		}
	}
	var group errgroup.Group
	group.SetLimit(workers)
	for i := range units {
		group.Go(func() error {
			u := &units[i]
			file := filepath.Join(into, fmt.Sprintf("reached-%d", i))
			took, printed, err := s.start(ctx, u.binary, []string{u.test}, 10*time.Minute, reachedVariable+"="+file)
			if err != nil {
				return fmt.Errorf("the tests of %s fail without a mutant (test %q): %w\n%s", u.binary.dir, u.test, err, printed)
			}
			u.took = took
			u.reached, err = readNumbers(file)
			return err
		})
	}
	return units, group.Wait()
}

// runMutant runs the tests that reach the mutant, quick ones first, until one fails.
func (s MutatedCode) runMutant(ctx context.Context, m Mutant, units []unit) RunResult {
	result := RunResult{Mutant: m}
	for _, dir := range s.testsOf(m.Package) {
		var reaching []unit
		for _, u := range units {
			if u.binary.dir == dir && u.reached[m.Number] {
				reaching = append(reaching, u)
			}
		}
		slices.SortStableFunc(reaching, func(a, b unit) int { return int(a.took - b.took) })
		result.Reached = result.Reached || len(reaching) > 0
		for len(reaching) > 0 {
			var names []string
			var took time.Duration
			for _, u := range reaching {
				if len(names) > 0 && took+u.took > quickLimit {
					break
				}
				names, took = append(names, u.test), took+u.took
			}
			b := reaching[0].binary
			reaching = reaching[len(names):]
			variable := SelectedVariable + "=" + strconv.Itoa(m.Number)
			if _, _, err := s.start(ctx, b, names, cpuSlack+slackFactor*took, variable); err != nil {
				result.Killed, result.By = true, dir
				return result
			}
		}
	}
	return result
}

// start runs tests of a binary in the directory of its package, with a limit of their CPU time, and returns the CPU time and
// the end of the output.
func (s MutatedCode) start(ctx context.Context, b binary, tests []string, limit time.Duration, variable string) (time.Duration, string, error) {
	timeout := idleSlack + limit
	limited, cancel := context.WithTimeout(ctx, timeout+5*time.Second)
	defer cancel()
	quoted := make([]string, len(tests))
	for i, name := range tests {
		quoted[i] = regexp.QuoteMeta(name)
	}
	args := []string{
		"-c", fmt.Sprintf(`ulimit -v %d; ulimit -t %d; exec "$0" "$@"`, memoryLimit, int(limit.Seconds())+1), b.file, "-test.paniconexit0", "-test.failfast",
		"-test.timeout=" + timeout.String(), "-test.run=^(" + strings.Join(quoted, "|") + ")$",
	}
	command := exec.CommandContext(limited, "sh", append(args, b.flags...)...)
	command.Dir = filepath.Join(s.root, b.dir)
	command.Env = append(os.Environ(), variable)
	command.WaitDelay = time.Second
	printed, err := command.CombinedOutput()
	var took time.Duration
	if ended := command.ProcessState; ended != nil {
		took = ended.UserTime() + ended.SystemTime()
	}
	return took, tail(string(printed), 40), err
}

func readNumbers(file string) (map[int]bool, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading the reached mutants: %w", err)
	}
	numbers := map[int]bool{}
	for line := range strings.FieldsSeq(string(text)) {
		number, err := strconv.Atoi(line)
		if err != nil {
			return nil, fmt.Errorf("reading the reached mutants: %w", err)
		}
		numbers[number] = true
	}
	return numbers, nil
}

// tail returns the last lines of a text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
