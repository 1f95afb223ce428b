package karpenterspecs

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Reasons why a spec fails with Joist's planner.
const (
	// upstreamInternals: the spec tests Karpenter's own code, such as its metrics and the texts of its errors.
	upstreamInternals = "upstream's internals"
	// deferredBatch: Karpenter leaves pods for its next pass, Joist places them in this one.
	deferredBatch = "deferred batch"
	// documentedDifference: deploy/docs/differences.md lists it.
	documentedDifference = "documented difference"
)

// suiteList is testdata/<suite>.yaml.
type suiteList struct {
	// Ran is how many specs run.
	Ran      int            `json:"ran"`
	Failures []failureGroup `json:"failures"`
}

// restrictTo returns the list of the specs that ran.
func (l suiteList) restrictTo(outcomes []outcome) suiteList {
	ran := map[string]bool{}
	var out suiteList
	for _, o := range outcomes {
		if o.ran() {
			ran[o.name] = true
			out.Ran++
		}
	}
	for _, group := range l.Failures {
		group.Specs = slices.DeleteFunc(slices.Clone(group.Specs), func(name string) bool { return !ran[name] })
		out.Failures = append(out.Failures, group)
	}
	return out
}

// failureGroup are specs that fail for the same reason.
type failureGroup struct {
	Reason string `json:"reason"`
	// Because says what differs.
	Because string `json:"because"`
	// Topic is the row of differences.md, for a documented difference.
	Topic string   `json:"topic,omitempty"`
	Specs []string `json:"specs"`
}

// readList reads and checks a list.
func readList(path, differences string) (suiteList, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return suiteList{}, fmt.Errorf("reading the list of failing specs: %w", err)
	}
	var out suiteList
	if err := yaml.UnmarshalStrict(content, &out); err != nil {
		return out, fmt.Errorf("reading %s: %w", path, err)
	}
	var problems []error
	for i, group := range out.Failures {
		switch {
		case !slices.Contains([]string{upstreamInternals, deferredBatch, documentedDifference}, group.Reason):
			problems = append(problems, fmt.Errorf("%s: failures[%d]: unknown reason %q", path, i, group.Reason))
		case group.Because == "" || len(group.Specs) == 0:
			problems = append(problems, fmt.Errorf("%s: failures[%d]: because and specs must not be empty", path, i))
		case (group.Reason == documentedDifference) != hasRow(differences, group.Topic):
			problems = append(problems, fmt.Errorf("%s: failures[%d]: topic %q: a documented difference, and nothing else, has the topic of a row of differences.md", path, i, group.Topic))
		}
	}
	return out, errors.Join(problems...)
}

// hasRow reports whether a table of the page has a row with this topic in its first column.
func hasRow(page, topic string) bool {
	return topic != "" && regexp.MustCompile(`(?m)^\| `+regexp.QuoteMeta(strings.TrimSpace(topic))+` \|`).MatchString(page)
}
