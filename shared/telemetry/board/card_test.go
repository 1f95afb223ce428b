package board_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/cardtest"
	"github.com/joist-autoscaler/joist/shared/telemetry/board"
)

var runbook = regexp.MustCompile(`^\[([a-z-]+)\]\(\.\./\.\./deploy/docs/runbooks/([a-z-]+)\.md\)$`)

// alarmsOf are the rows of a card's table of alarms, by the alarm's name.
func alarmsOf(t *testing.T, service string) map[string]string {
	t.Helper()
	path, section, err := cardtest.Section("../../..", service, "Alarms")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for cell, row := range cardtest.Rows(section, "alarm") {
		link := runbook.FindStringSubmatch(cell)
		if link == nil || link[1] != link[2] {
			t.Errorf("%s has the alarm %q, which names no runbook: what wakes nobody is no alarm", path, cell)
			continue
		}
		rows[link[1]] = row
	}
	return rows
}

// What a service's card calls an alarm is one, and who reads a queue is told when
// messages wait in it or are parked, after the time that the alarm has.
func TestCardsNameAlarms(t *testing.T) {
	for _, service := range []string{"catalog", "disruption", "interruption", "launcher", "lifecycle", "planner", "watcher"} {
		alarms := alarmsOf(t, service)
		if len(alarms) == 0 {
			t.Errorf("the card of %s has no alarms", service)
		}
		for name := range alarms {
			if !slices.ContainsFunc(board.Watches, func(w board.Watch) bool { return w.Name == name }) {
				t.Errorf("the card of %s has %s, which is no alarm", service, name)
			}
		}
		budget, reads := board.Budgets[service]
		if !reads {
			continue
		}
		if alarms["dead-letters"] == "" {
			t.Errorf("the card of %s leaves its dead letters out", service)
		}
		if age := fmt.Sprintf(" %.0f s", budget.Seconds()); !strings.Contains(alarms["oldest-message"], age) {
			t.Errorf("the card of %s does not say that messages may be%s old", service, age)
		}
	}
}
