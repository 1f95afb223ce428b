package peers

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stream is test2json's output of a run: a pass, a known failure, another failure of the
// same behaviour, a skip, a failed setup, and a peer that is not installed.
const stream = `
{"Action":"start"}
{"Action":"run","Test":"TestElasticMQ"}
{"Action":"run","Test":"TestElasticMQ/does_this"}
{"Action":"pass","Test":"TestElasticMQ/does_this"}
{"Action":"run","Test":"TestElasticMQ/does_that"}
{"Action":"output","Test":"TestElasticMQ/does_that","Output":"    a.go:1: one, and\n"}
{"Action":"output","Test":"TestElasticMQ/does_that","Output":"        its diff\n"}
{"Action":"output","Test":"TestElasticMQ/does_that","Output":"    a.go:2: two\n"}
{"Action":"fail","Test":"TestElasticMQ/does_that"}
{"Action":"run","Test":"TestElasticMQ/does_more"}
{"Action":"skip","Test":"TestElasticMQ/does_more"}
{"Action":"output","Test":"TestElasticMQ","Output":"--- FAIL: TestElasticMQ (1.00s)\n"}
{"Action":"fail","Test":"TestElasticMQ"}
{"Action":"run","Test":"TestRuler"}
{"Action":"output","Test":"TestRuler","Output":"    b.go:1: no Java\n"}
{"Action":"fail","Test":"TestRuler"}
{"Action":"run","Test":"TestTerraformModule"}
{"Action":"output","Test":"TestTerraformModule","Output":"    c.go:1: no tofu\n"}
{"Action":"skip","Test":"TestTerraformModule"}
{"Action":"fail"}`

func results(t *testing.T) []result {
	t.Helper()
	out, err := read(strings.NewReader(stream), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFailureMessages(t *testing.T) {
	for _, r := range results(t) {
		want := map[string][]string{
			"TestElasticMQ/does_that": {"one, and\n        its diff\n", "two\n"}, "TestRuler": {"no Java\n"}, "TestTerraformModule": {"no tofu\n"},
		}[r.test]
		if diff := cmp.Diff(want, r.messages()); diff != "" {
			t.Errorf("%s: %s", r.test, diff)
		}
	}
}

// TestTableMustBeExact checks that the table must be exact: each failure has a row, and each row
// a failure.
func TestTableMustBeExact(t *testing.T) {
	noJava := difference{"TestRuler", "", nil, ""}
	for _, test := range []struct {
		name  string
		table []difference
		wrong []string
	}{
		{"no rows", nil, []string{"no known difference: TestElasticMQ/does_that", "no known difference: TestRuler"}},
		{"a row", []difference{{"TestElasticMQ", "does that", []string{"one", "two"}, ""}}, []string{"no known difference: TestRuler"}},
		{"a row for a part of the messages", []difference{{"TestElasticMQ", "does that", []string{"two"}, ""}},
			[]string{"no known difference: TestElasticMQ/does_that", "no known difference: TestRuler"}},
		{"a row for a behaviour that agrees", []difference{{"TestElasticMQ", "does this", []string{"one"}, ""}},
			[]string{"no known difference: TestElasticMQ/does_that", "no known difference: TestRuler", "no longer occurs: TestElasticMQ, does this"}},
		{"rows for behaviours that did not run", []difference{{"TestElasticMQ", "does more", nil, ""}, noJava},
			[]string{"no known difference: TestElasticMQ/does_that", "no known difference: TestRuler",
				"not tried: TestElasticMQ, does more", "not tried: TestRuler, "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := compare(results(t), test.table).print(new(strings.Builder), false)
			if err == nil {
				t.Fatal("print returned no error")
			}
			text := err.Error()
			for _, want := range test.wrong {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing from %q", want, text)
				}
			}
			for _, each := range []string{"no known difference:", "no longer occurs:", "was not tried:"} {
				if got, want := strings.Count(text, each), strings.Count(strings.Join(test.wrong, ""), strings.TrimPrefix(each, "was ")); got != want {
					t.Errorf("%q occurs %d times, want %d: %s", each, got, want, text)
				}
			}
		})
	}
}

// TestMissingPeerIsNamed checks that a peer that this machine does not have is no failure and is named with the reason.
func TestMissingPeerIsNamed(t *testing.T) {
	var out strings.Builder
	err := compare(results(t), nil).print(&out, false)
	if strings.Contains(err.Error(), "OpenTofu") || !strings.Contains(err.Error(), "no test of cfn-lint") || !strings.Contains(out.String(), "not tried: no tofu") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestDifferencesHaveReasons checks that each row has a failure message and a reason.
func TestDifferencesHaveReasons(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range differences {
		if len(row.messages) == 0 || row.reason == "" || seen[row.full()] {
			t.Errorf("%s has no messages or no reason, or occurs twice", row.full())
		}
		seen[row.full()] = true
	}
}
