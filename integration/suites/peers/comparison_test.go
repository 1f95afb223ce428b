package peers

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// peer is a peer with its test.
type peer struct {
	test, name string
	// version matches its version in the file.
	file    string
	version *regexp.Regexp
}

var allOfThem = []peer{
	{"TestElasticMQ", "ElasticMQ", "pom.xml", regexp.MustCompile(`elasticmq-server_2.13</artifactId>\s*<version>(.*)<`)},
	{"TestMotoQueues", "moto (SQS, EventBridge)", "requirements.txt", regexp.MustCompile(`moto.*==(.*)`)},
	{"TestMotoCloud", "moto (EC2, SSM, EKS, IAM)", "requirements.txt", regexp.MustCompile(`moto.*==(.*)`)},
	{"TestTemplates", "cfn-lint", "requirements.txt", regexp.MustCompile(`cfn-lint==(.*)`)},
	{"TestLocalStackDeploy", "LocalStack (deployed by the CDK)", "localstack.txt", regexp.MustCompile(`localstack-core.*==(.*)`)},
	{"TestMotoDeploy", "moto (deployed by the CDK)", "requirements.txt", regexp.MustCompile(`moto.*==(.*)`)},
	{"TestTerraformModule", "moto (applied by OpenTofu)", "requirements.txt", regexp.MustCompile(`moto.*==(.*)`)},
	{"TestRuler", "event-ruler", "pom.xml", regexp.MustCompile(`event-ruler</artifactId>\s*<version>(.*)<`)},
}

// allPeers returns the regular expression of their tests.
func allPeers() string {
	var names []string
	for _, p := range allOfThem {
		names = append(names, p.test)
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

func (p peer) String() string {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return p.name
	}
	found := p.version.FindSubmatch(text)
	if found == nil {
		return p.name
	}
	return p.name + " " + string(found[1])
}

// comparisonResult is the comparison of the suites' results with the table.
type comparisonResult struct {
	passed, skipped map[string][]string // by test
	notes           map[string][]string // passed tests with log output
	absent          map[string]string   // why a whole test was skipped
	known           []difference
	// unexpected are failures without a row, vanished are rows without a failure, unseen are
	// rows whose behaviour did not run.
	unexpected       []string
	resolved, notRun []difference
}

// compare compares the results with the table.
func compare(results []result, table []difference) comparisonResult {
	out := comparisonResult{passed: map[string][]string{}, skipped: map[string][]string{}, notes: map[string][]string{}, absent: map[string]string{}}
	ran := map[string]result{}
	for _, r := range results {
		ran[r.test] = r
		test, behaviour, _ := strings.Cut(r.test, "/")
		behaviour = strings.ReplaceAll(behaviour, "_", " ")
		switch {
		case r.failed():
			if row := explain(r, table); row == nil {
				out.unexpected = append(out.unexpected, r.test+"\n"+strings.Join(r.output, ""))
			}
		case behaviour == "" && r.action == "skip":
			out.absent[test] = strings.TrimSpace(strings.Join(r.messages(), " "))
		case r.inner || behaviour == "":
		case r.action == "skip":
			out.skipped[test] = append(out.skipped[test], behaviour)
		default:
			out.passed[test] = append(out.passed[test], behaviour)
			out.notes[test] = append(out.notes[test], r.messages()...)
		}
	}
	for _, row := range table {
		r, ok := ran[row.full()]
		switch {
		case !ok || r.action == "skip":
			out.notRun = append(out.notRun, row)
		case r.failed():
			out.known = append(out.known, row)
		default:
			out.resolved = append(out.resolved, row)
		}
	}
	return out
}

// explain returns the row of a failure. The row must expect all messages of the failure,
// so that a known difference cannot hide another one.
func explain(r result, table []difference) *difference {
	at := slices.IndexFunc(table, func(d difference) bool { return d.full() == r.test })
	if at < 0 || len(r.messages()) == 0 {
		return nil
	}
	for _, message := range r.messages() {
		if !slices.ContainsFunc(table[at].messages, func(s string) bool { return strings.Contains(message, s) }) {
			return nil
		}
	}
	return &table[at]
}

// print writes the summary. It returns an error if the table is not exact; some is set if
// only a part of the tests ran.
func (j comparisonResult) print(w io.Writer, some bool) error {
	var wrong []error
	fmt.Fprintf(w, "%-34s %8s %8s %10s\n", "peer", "agrees", "differs", "not tried")
	for _, p := range allOfThem {
		passed := len(j.passed[p.test])
		if passed == 0 && !some && j.absent[p.test] == "" {
			wrong = append(wrong, fmt.Errorf("no test of %s ran", p))
		}
		known := 0
		for _, row := range j.known {
			if row.test == p.test {
				known++
			}
		}
		fmt.Fprintf(w, "%-34s %8d %8d %10d\n", p, passed, known, len(j.skipped[p.test]))
	}
	for _, p := range allOfThem {
		j.printPeer(w, p)
	}
	for _, each := range j.unexpected {
		wrong = append(wrong, fmt.Errorf("\nno known difference: %s", each))
	}
	for _, row := range j.resolved {
		wrong = append(wrong, fmt.Errorf("a known difference no longer occurs: %s, %s. Try: remove its row from differences_test.go", row.test, row.behaviour))
	}
	if !some {
		for _, row := range j.notRun {
			wrong = append(wrong, fmt.Errorf("a known difference was not tried: %s, %s. Try: correct its name", row.test, row.behaviour))
		}
	}
	return errors.Join(wrong...)
}

func (j comparisonResult) printPeer(w io.Writer, p peer) {
	if why := j.absent[p.test]; why != "" {
		fmt.Fprintf(w, "\n%s\n  not tried: %s\n", p, why)
		return
	}
	if len(j.passed[p.test])+len(j.skipped[p.test]) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", p)
	for _, row := range j.known {
		if row.test == p.test {
			fmt.Fprintf(w, "  differs: %s: %s\n", row.behaviour, row.reason)
		}
	}
	for _, note := range j.notes[p.test] {
		fmt.Fprintf(w, "  %s\n", strings.TrimSpace(note))
	}
	for _, behaviour := range j.skipped[p.test] {
		fmt.Fprintf(w, "  not tried: %s\n", behaviour)
	}
}
