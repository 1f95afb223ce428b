package telemetry

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
)

// errorKinds are all kinds of errors.
var errorKinds = []fault.Kind{
	fault.Retry, fault.Throttled, fault.Foreign, fault.Stale, fault.Poison, fault.Denied, fault.Missing, fault.Conflict, fault.Invalid, fault.Rejected, fault.Unknown, fault.Bug,
}

// initialLabels are the values that the last label of a counter can have, where there is a list
// and an alarm waits for one of them; another label is the service.
var initialLabels = map[string][]string{
	DeadLetters.Name: toStrings(errorKinds), HandlingErrors.Name: toStrings(errorKinds), DispositionFailures.Name: toStrings([]host.Action{host.Delete, host.RetryLater, host.MoveToDLQ}),
	LaunchesStopped.Name: toStrings([]fault.Kind{fault.Throttled, fault.Denied}), ForeignRequestsRefused.Name: {"instance", "profile"},
	RecordsRefused.Name: toStrings([]host.RefusalReason{host.UnknownQueue, host.UnknownReceipt}),
}

func toStrings[T ~string](list []T) []string {
	var out []string
	for _, one := range list {
		out = append(out, string(one))
	}
	return out
}

// initCounters makes a service's counters stand at nothing before anything is counted, as far as
// their labels are known then. To Prometheus a series that appears with 1 has not grown, so
// an alarm would miss what happens first after each start.
func (m meters) initCounters(service string) {
	for _, entry := range Catalogue {
		if entry.Kind != Counter || !slices.Contains(entry.Services, service) {
			continue
		}
		if len(entry.Labels) == 0 {
			m.recordValue(entry, 0)
		}
		for _, last := range initialLabels[entry.Name] {
			if len(entry.Labels) > 1 {
				m.recordValue(entry, 0, service, last)
			} else {
				m.recordValue(entry, 0, last)
			}
		}
	}
}
