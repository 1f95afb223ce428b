package karpenterspecs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// outcome is a spec as Ginkgo reports it.
type outcome struct {
	name string
	// state is Ginkgo's: passed, skipped, pending, failed, panicked, timedout, interrupted or aborted.
	state   string
	message string
	// attempts is how often the spec ran: twice if it failed at first.
	attempts int
}

func (o outcome) passed() bool { return o.state == "passed" }
func (o outcome) ran() bool    { return o.state != "skipped" && o.state != "pending" }

// readReport reads Ginkgo's JSON report of one suite. It fails if the setup or the end of the suite failed.
func readReport(path string) ([]outcome, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the report of the specs: %w", err)
	}
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts []string
			LeafNodeType            string
			LeafNodeText            string
			State                   string
			NumAttempts             int
			Failure                 struct {
				Message, ForwardedPanic string
				Location                struct {
					FileName   string
					LineNumber int
				}
			}
		}
	}
	if err := json.Unmarshal(content, &suites); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	var out []outcome
	for _, suite := range suites {
		for _, s := range suite.SpecReports {
			where := fmt.Sprintf("%s:%d", filepath.Base(s.Failure.Location.FileName), s.Failure.Location.LineNumber)
			one := outcome{
				name: strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " > "), state: s.State, attempts: s.NumAttempts,
				message: fmt.Sprintf("%s: %s %s", where, s.Failure.ForwardedPanic, shorten(s.Failure.Message)),
			}
			switch {
			case s.LeafNodeType == "It":
				out = append(out, one)
			case !one.passed() && one.ran():
				return nil, fmt.Errorf("%s of the suite: %s", s.LeafNodeType, one.message)
			}
		}
	}
	return out, nil
}

// shorten returns the start of a message on one line.
func shorten(message string) string {
	line := strings.Join(strings.Fields(message), " ")
	return line[:min(len(line), 300)]
}

// comparison is the result of a suite, compared with its list of failures.
type comparison struct {
	ran, passed int
	// repeated are the specs that passed only when they ran again.
	repeated []string
	// byReason counts the listed failures.
	byReason map[string]int
	// mistakes are failures that are not listed, and listed specs that do not fail.
	mistakes []string
}

// compareOutcomes compares the outcomes with the list. Several specs may have one name; each failure needs its entry.
func compareOutcomes(outcomes []outcome, listed suiteList) comparison {
	out := comparison{byReason: map[string]int{}}
	reasons := map[string][]string{}
	for _, group := range listed.Failures {
		for _, name := range group.Specs {
			reasons[name] = append(reasons[name], group.Reason)
		}
	}
	for _, o := range outcomes {
		switch left := reasons[o.name]; {
		case !o.ran():
		case o.passed():
			out.ran++
			out.passed++
			if o.attempts > 1 {
				out.repeated = append(out.repeated, o.name)
			}
		case len(left) > 0:
			out.ran++
			out.byReason[left[0]]++
			reasons[o.name] = left[1:]
		default:
			out.ran++
			out.mistakes = append(out.mistakes, fmt.Sprintf("fails and is not listed: %s\n      %s", o.name, o.message))
		}
	}
	for name, left := range reasons {
		for range left {
			out.mistakes = append(out.mistakes, "is listed and does not fail: "+name)
		}
	}
	if out.ran != listed.Ran {
		out.mistakes = append(out.mistakes, fmt.Sprintf("%d specs ran, the list says %d", out.ran, listed.Ran))
	}
	slices.Sort(out.mistakes)
	return out
}
