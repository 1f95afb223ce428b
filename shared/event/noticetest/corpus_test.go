package noticetest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/corpus.golden")

var sent = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// TestCorpus compares names and expected results with the golden list.
func TestCorpus(t *testing.T) {
	const golden = "testdata/corpus.golden"
	var got bytes.Buffer
	for _, e := range Corpus(sent) {
		fmt.Fprintf(&got, "%-8s%s\n", e.Want, e.Name)
	}
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the corpus has changed; run with -update if it was meant to (-golden +now):\n%s", diff)
	}
}

func TestEntriesAreDistinct(t *testing.T) {
	entries := Corpus(sent)
	odd, verdicts, bodies := 0, map[ExpectedResult]int{}, map[string]string{}
	names := map[string]bool{}
	for _, e := range entries {
		if names[e.Name] {
			t.Errorf("two entries have the name %q", e.Name)
		}
		names[e.Name] = true
		verdicts[e.Want]++
		if _, known := bodies[string(e.Body)]; !known {
			odd++
		}
		bodies[string(e.Body)] = e.Name
		if acts := e.Want == Act; acts != (len(e.Instances) > 0) || acts != (e.Kind != "") {
			t.Errorf("%s: the verdict is %s, for %q of kind %q", e.Name, e.Want, e.Instances, e.Kind)
		}
	}
	t.Logf("%d entries of %d bodies: %v", len(entries), odd, verdicts)
	if odd < 500 {
		t.Errorf("the corpus has %d bodies, and is to have 500", odd)
	}
	for _, v := range []ExpectedResult{Act, Foreign, Stale, Poison, NotDelivered} {
		if verdicts[v] < 10 {
			t.Errorf("%d entries are %s", verdicts[v], v)
		}
	}
}

func TestCorpusIsDeterministic(t *testing.T) {
	again := Corpus(sent)
	for i, e := range Corpus(sent) {
		if !reflect.DeepEqual(e, again[i]) {
			t.Errorf("%s differs between two runs", e.Name)
		}
	}
}
