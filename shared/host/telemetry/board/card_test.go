package board_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/host/cardtest"
	"github.com/joist-autoscaler/joist/shared/host/telemetry/board"
)

var runbook = regexp.MustCompile(`^\[([a-z-]+)\]\(\.\./\.\./deploy/docs/runbooks/([a-z-]+)\.md\)$`)

// alarmsOf returns the rows of a card's table of alarms, by the alarm's name.
func alarmsOf(t *testing.T, service string) map[string]string {
	t.Helper()
	path, section, err := cardtest.ReadSection("../../../..", service, "Alarms")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for cell, row := range cardtest.TableRows(section, "alarm") {
		link := runbook.FindStringSubmatch(cell)
		if link == nil || link[1] != link[2] {
			t.Errorf("%s has the alarm %q without a runbook: list only alarms of the catalogue", path, cell)
			continue
		}
		rows[link[1]] = row
	}
	return rows
}

// The alarms in a service's card exist. The card of a service with a queue has the alarms
// of DLQ messages and of the oldest message, with the limit of the alarm.
func TestCardsNameAlarms(t *testing.T) {
	for _, service := range []string{"catalog", "disruption", "interruption", "launcher", "lifecycle", "planner", "watcher"} {
		alarms := alarmsOf(t, service)
		if len(alarms) == 0 {
			t.Errorf("the card of %s has no alarms", service)
		}
		for name := range alarms {
			if !slices.ContainsFunc(board.Alerts, func(w board.Alert) bool { return w.Name == name }) {
				t.Errorf("the card of %s has %s, which is no alarm", service, name)
			}
		}
		budget, reads := board.Budgets[service]
		if !reads {
			continue
		}
		if alarms["dlq-messages"] == "" {
			t.Errorf("the card of %s has no alarm for DLQ messages", service)
		}
		if age := fmt.Sprintf(" %.0f s", budget.Seconds()); !strings.Contains(alarms["oldest-message"], age) {
			t.Errorf("the card of %s does not say that messages may be%s old", service, age)
		}
	}
}
