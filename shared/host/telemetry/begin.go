package telemetry

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
)

// kinds are all kinds of errors.
var kinds = []fault.Kind{
	fault.Retry, fault.Throttled, fault.Foreign, fault.Stale, fault.Poison, fault.Denied, fault.Missing, fault.Conflict, fault.Invalid, fault.Rejected, fault.Unknown, fault.Bug,
}

// begins are the values that the last label of a counter can have, where there is a list
// and an alarm waits for one of them; another label is the service.
var begins = map[string][]string{
	DeadLetters.Name: texts(kinds), Refused.Name: texts(kinds), Undone.Name: texts([]host.Action{host.Delete, host.Hide, host.Park}),
	Stopped.Name: texts([]fault.Kind{fault.Throttled, fault.Denied}), Spared.Name: {"instance", "profile"},
	Strange.Name: texts([]host.Strangeness{host.StrangeQueue, host.StrangeReceipt}),
}

func texts[T ~string](list []T) []string {
	var out []string
	for _, one := range list {
		out = append(out, string(one))
	}
	return out
}

// begin makes a service's counters stand at nothing before anything is counted, as far as
// their labels are known then. To Prometheus a series that appears with 1 has not grown, so
// an alarm would miss what happens first after each start.
func (m meters) begin(service string) {
	for _, entry := range Catalogue {
		if entry.Kind != Counter || !slices.Contains(entry.Services, service) {
			continue
		}
		if len(entry.Labels) == 0 {
			m.record(entry, 0)
		}
		for _, last := range begins[entry.Name] {
			if len(entry.Labels) > 1 {
				m.record(entry, 0, service, last)
			} else {
				m.record(entry, 0, last)
			}
		}
	}
}
