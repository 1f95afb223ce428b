package stack_test

import (
	"encoding/csv"
	"maps"
	"slices"
	"strings"
	"testing"
)

// cdk-nag finds nothing that is not suppressed, and each suppression says why and is of
// something: the report of the plain app is read, since findings do not fail it.
func TestNagFindsNothing(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(contexts)) {
		rows, err := csv.NewReader(strings.NewReader(string(synth(t, name).findings))).ReadAll()
		if err != nil || len(rows) < 20 {
			t.Fatalf("%s: %d rows: %v", name, len(rows), err)
		}
		for _, row := range rows {
			rule, at, verdict, reason := row[0], row[1], row[2], row[3]
			switch verdict {
			case "Compliant", "N/A", "Compliance":
			case "Suppressed":
				if len(reason) < 40 {
					t.Errorf("%s: %s of %s is suppressed without a reason: %q", name, rule, at, reason)
				}
			default:
				t.Errorf("%s: %s of %s is %s", name, rule, at, verdict)
			}
		}
	}
}
