package telemetry

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/build"
	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// errorKinds lists all kinds of errors.
var errorKinds = []fault.Kind{
	fault.Retry, fault.Throttled, fault.Foreign, fault.Stale, fault.Poison, fault.Denied, fault.Missing, fault.Conflict, fault.Invalid, fault.Rejected, fault.Unknown, fault.Bug,
}

// initialLabels lists, for counters that alarms use, the values of the last label. A label before it is the service.
var initialLabels = map[string][]string{
	metric.DLQMessages.Name: toStrings(errorKinds), metric.HandlingErrors.Name: toStrings(errorKinds),
	metric.RetriesOverdue.Name: toStrings(errorKinds), metric.DispositionFailures.Name: toStrings([]host.Action{host.Delete, host.RetryLater, host.MoveToDLQ}),
	metric.LaunchesPaused.Name: toStrings([]fault.Kind{fault.Throttled, fault.Denied}), metric.ForeignRequestsRefused.Name: {"instance", "profile"},
	metric.RecordsRefused.Name: toStrings([]host.RefusalReason{host.UnknownQueue, host.UnknownReceipt}),
}

func toStrings[T ~string](list []T) []string {
	var out []string
	for _, one := range list {
		out = append(out, string(one))
	}
	return out
}

// initSeries records the version, and sets a service's counters to zero at startup, as far as their label values are
// known. Prometheus does not see an increase when a series first appears with 1, so an alarm would miss the first event
// after each start.
func (m meters) initSeries(service string) {
	built := build.Read()
	m.recordValue(metric.BuildInfo, 1, service, built.Version, built.Commit, built.Go)
	for _, entry := range metric.Catalogue {
		if entry.Kind != metric.Counter || !slices.Contains(entry.Services, service) {
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
