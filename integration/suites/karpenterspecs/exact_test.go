package karpenterspecs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// report is Ginkgo's report of four specs, two of which have one name.
const report = `[{"SpecReports": [
	{"LeafNodeType": "BeforeSuite", "State": "passed"},
	{"ContainerHierarchyTexts": ["Pods"], "LeafNodeType": "It", "LeafNodeText": "fit", "State": "passed"},
	{"ContainerHierarchyTexts": ["Pods"], "LeafNodeType": "It", "LeafNodeText": "spread", "State": "failed", "Failure": {"Message": "2\n3", "Location": {"FileName": "/a/b_test.go", "LineNumber": 7}}},
	{"ContainerHierarchyTexts": ["Pods"], "LeafNodeType": "It", "LeafNodeText": "spread", "State": "panicked"},
	{"ContainerHierarchyTexts": ["Pods"], "LeafNodeType": "It", "LeafNodeText": "wait", "State": "skipped"}
]}]`

func TestListMustBeExact(t *testing.T) {
	outcomes, err := readReport(writeFile(t, report))
	if err != nil {
		t.Fatal(err)
	}
	twice := failureGroup{Reason: deferredBatch, Because: "-", Specs: []string{"Pods > spread", "Pods > spread"}}
	for _, test := range []struct {
		name string
		list suiteList
		want []string
	}{
		{"exact", suiteList{Ran: 3, Failures: []failureGroup{twice}}, nil},
		{"a failure too few", suiteList{Ran: 3, Failures: []failureGroup{{Reason: deferredBatch, Specs: []string{"Pods > spread"}}}}, []string{"fails and is not listed: Pods > spread"}},
		{"a spec that passes", suiteList{Ran: 3, Failures: []failureGroup{twice, {Specs: []string{"Pods > fit"}}}}, []string{"is listed and does not fail: Pods > fit"}},
		{"a spec that does not run", suiteList{Ran: 3, Failures: []failureGroup{twice, {Specs: []string{"Pods > wait"}}}}, []string{"is listed and does not fail: Pods > wait"}},
		{"a spec that does not run, in a part", suiteList{Ran: 9, Failures: []failureGroup{twice, {Specs: []string{"Pods > wait"}}}}.restrictTo(outcomes), nil},
		{"another number of specs", suiteList{Ran: 4, Failures: []failureGroup{twice}}, []string{"3 specs ran, the list says 4"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := compareOutcomes(outcomes, test.list)
			if got.ran != 3 || got.passed != 1 {
				t.Errorf("%d ran and %d passed, not 3 and 1", got.ran, got.passed)
			}
			if len(got.mistakes) != len(test.want) || !slices.EqualFunc(got.mistakes, test.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got.mistakes, test.want)
			}
		})
	}
}

func TestFailedSetupIsAnError(t *testing.T) {
	_, err := readReport(writeFile(t, strings.Replace(report, `"BeforeSuite", "State": "passed"`, `"BeforeSuite", "State": "failed"`, 1)))
	if err == nil || !strings.Contains(err.Error(), "BeforeSuite of the suite") {
		t.Errorf("got %v", err)
	}
}

func TestListsAreChecked(t *testing.T) {
	const page = "| topic | Karpenter |\n|---|---|\n| zones | late |\n"
	for _, test := range []struct{ name, list, want string }{
		{"good", "ran: 1\nfailures: [{reason: documented difference, topic: zones, because: b, specs: [s]}]", ""},
		{"no such row", "failures: [{reason: documented difference, topic: hosts, because: b, specs: [s]}]", "hosts"},
		{"a topic too many", "failures: [{reason: deferred batch, topic: zones, because: b, specs: [s]}]", "zones"},
		{"unknown reason", "failures: [{reason: flaky, because: b, specs: [s]}]", "flaky"},
		{"no specs", "failures: [{reason: deferred batch, because: b}]", "specs"},
		{"unknown field", "ran: 1\nskipped: 2", "skipped"},
	} {
		_, err := readList(writeFile(t, test.list), page)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", test.name, err)
		}
	}
}

func TestEditsMustApply(t *testing.T) {
	path := writeFile(t, "one two two")
	module, file := filepath.Dir(path), filepath.Base(path)
	if err := applyEdit(module, edit{file, "two", "2", 1}); err == nil || !strings.Contains(err.Error(), "occurs 2 times, not 1") {
		t.Errorf("got %v", err)
	}
	if err := applyEdit(module, edit{file, "two", "2", 2}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "one 2 2" {
		t.Errorf("got %q, %v", got, err)
	}
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
