package notice

import (
	"time"
)

// WarningPeriod is the time between EC2's warning and the interruption. The deadline is the
// event's time plus this, regardless of how long the message was in transit.
const WarningPeriod = 120 * time.Second

// readSpotWarning decodes a spot interruption warning.
func readSpotWarning(r *eventReader, n *Notice) (err error) {
	n.Detail, n.Deadline = string(r.text(detailAction)), n.Noticed.Add(WarningPeriod)
	n.Instances, err = r.readInstance(n.Instances)
	return err
}

// readRebalance decodes a rebalance recommendation, which has no deadline.
func readRebalance(r *eventReader, n *Notice) (err error) {
	n.Instances, err = r.readInstance(n.Instances)
	return err
}

// readReservationWarning decodes the warning that the owner of a capacity reservation
// reclaims an instance. A termination time between the event and the end of the warning
// period is the deadline.
func readReservationWarning(r *eventReader, n *Notice) (err error) {
	n.Detail, n.Deadline = string(r.text(detailAction)), n.Noticed.Add(WarningPeriod)
	if end, err := time.Parse(time.RFC3339, string(r.text(detailTerminationTime))); err == nil && end.After(n.Noticed) && end.Before(n.Deadline) {
		n.Deadline = end.UTC()
	}
	n.Instances, err = r.readInstance(n.Instances)
	return err
}
