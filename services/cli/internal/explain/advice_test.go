package explain

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestAdviceForEachRule compares the advice with the rules in the README of disruption.
func TestAdviceForEachRule(t *testing.T) {
	card, err := os.ReadFile("../../../disruption/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(card), "| rule | a node stays because of |")
	table, _, _ = strings.Cut(table, "\n\n")
	listed := map[string]bool{RuleNotManaged: true}
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) < 3 {
			continue
		}
		for _, rule := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(cells[1], -1) {
			listed[rule[1]] = true
			if _, ok := advice[rule[1]]; !ok {
				t.Errorf("there is no advice for rule %s", rule[1])
			}
		}
	}
	if len(listed) < 30 {
		t.Fatalf("the README lists only %d rules", len(listed))
	}
	for rule := range advice {
		if !listed[rule] {
			t.Errorf("there is advice for %s, which is no rule", rule)
		}
	}
}
