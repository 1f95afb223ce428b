package fuzz

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// Executions is what one run of a fuzzer reports.
type Executions struct {
	// Inputs is how many inputs ran, and New how many of them reached new code.
	Inputs, New int
	// Known is how many inputs of earlier runs and of the test's own files ran again before.
	Known int
}

// baseline is a line of go test -fuzz before the first new input.
var baseline = regexp.MustCompile(`(?m)^fuzz: elapsed: .*, gathering baseline coverage: (\d+)/`)

// progress is a line of go test -fuzz: fuzz: elapsed: 3s, execs: 31 (10/sec), new interesting: 2 (total: 9).
var progress = regexp.MustCompile(`(?m)^fuzz: elapsed: .*, execs: (\d+) .*new interesting: (\d+) `)

// ReadResult reads the output of go test -fuzz. The error is nil if the fuzzer ran and found nothing: also if the time
// ended while an input was running, which go test reports as the failure "context deadline exceeded" without an
// input.
func ReadResult(output string, failed error) (Executions, error) {
	var r Executions
	if all := baseline.FindAllStringSubmatch(output, -1); len(all) > 0 {
		r.Known, _ = strconv.Atoi(all[len(all)-1][1])
	}
	if all := progress.FindAllStringSubmatch(output, -1); len(all) > 0 {
		last := all[len(all)-1]
		r.Inputs, _ = strconv.Atoi(last[1])
		r.New, _ = strconv.Atoi(last[2])
	}
	switch {
	case failed != nil && !isDeadlineOnly(output):
		return r, failed
	case r.Inputs+r.Known == 0:
		return r, errors.New("the fuzzer ran no input: is its time too short?")
	default:
		return r, nil
	}
}

// isDeadlineOnly reports whether the only failure in the output is the end of the time.
func isDeadlineOnly(output string) bool {
	ended := false
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		switch {
		case line == "context deadline exceeded":
			ended = true
		case line == "", line == "FAIL", strings.HasPrefix(line, "FAIL\t"), strings.HasPrefix(line, "exit status "), strings.HasPrefix(line, "fuzz: "), strings.HasPrefix(line, "--- FAIL: Fuzz"):
		default:
			return false
		}
	}
	return ended
}
