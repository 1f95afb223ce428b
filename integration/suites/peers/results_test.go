package peers

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// result is the result of one test.
type result struct {
	// test is its full name: "TestMotoCloud/fleet/rejects_a_count_of_zero".
	test string
	// action is "pass", "fail" or "skip".
	action string
	// output has the lines that it printed itself.
	output []string
	// inner is set if it has subtests.
	inner bool
}

// slow is the duration in seconds from which the end of a test is printed as progress.
const slow = 5

// read reads test2json's events and prints progress: each completed test without
// subtests, and each slow one.
func read(from io.Reader, progress io.Writer) ([]result, error) {
	var order []string
	byName := map[string]*result{}
	for decoder := json.NewDecoder(from); ; {
		var event struct {
			Action, Test, Output string
			Elapsed              float64
		}
		if err := decoder.Decode(&event); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading the output of the suites: %w", err)
		}
		if event.Test == "" {
			continue
		}
		r := byName[event.Test]
		if r == nil {
			order = append(order, event.Test)
			r = &result{test: event.Test}
			byName[event.Test] = r
		}
		switch event.Action {
		case "pass", "fail", "skip":
			r.action = event.Action
			if !strings.Contains(event.Test, "/") || event.Elapsed >= slow {
				fmt.Fprintf(progress, "  ended: %s (%.0f s)\n", event.Test, event.Elapsed)
			}
		case "output":
			r.output = append(r.output, event.Output)
		}
	}
	var out []result
	for _, name := range order {
		if at := strings.LastIndex(name, "/"); at > 0 && byName[name[:at]] != nil {
			byName[name[:at]].inner = true
		}
	}
	for _, name := range order {
		out = append(out, *byName[name])
	}
	return out, nil
}

// beginning is the testing package's prefix of logged lines.
var beginning = regexp.MustCompile(`^ +\S+\.go:\d+: `)

// messages returns what the test logged, each with its continuation lines.
func (r result) messages() []string {
	var out []string
	for _, line := range r.output {
		switch {
		case beginning.MatchString(line):
			out = append(out, beginning.ReplaceAllString(line, ""))
		case len(out) > 0 && strings.HasPrefix(line, "     "):
			out[len(out)-1] += line
		}
	}
	return out
}

// failed reports whether the test itself failed, not only its subtests.
func (r result) failed() bool {
	return r.action != "pass" && r.action != "skip" && (!r.inner || len(r.messages()) > 0)
}
