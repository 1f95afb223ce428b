package notice

import (
	"time"
)

// WarningPeriod is how long before the end EC2 warns. The deadline that follows from
// it is absolute: when AWS said so plus this, however long it travelled.
const WarningPeriod = 120 * time.Second

// readSpotWarning reads the warning that a spot instance is taken back.
func readSpotWarning(r *eventReader, n *Notice) (err error) {
	n.Detail, n.Deadline = r.internedText(detailAction), n.Noticed.Add(WarningPeriod)
	n.Instances, err = r.readInstance(n.Instances)
	return err
}

// readRebalance reads the recommendation to leave a spot instance. Nothing
// ends by it.
func readRebalance(r *eventReader, n *Notice) (err error) {
	n.Instances, err = r.readInstance(n.Instances)
	return err
}

// readReservationWarning reads the warning that the owner of a capacity reservation takes
// an instance back. If it names the end, the earlier of the two counts;
// an end before the warning is none.
func readReservationWarning(r *eventReader, n *Notice) (err error) {
	n.Detail, n.Deadline = r.internedText(detailAction), n.Noticed.Add(WarningPeriod)
	if end, err := time.Parse(time.RFC3339, string(r.text(detailTerminationTime))); err == nil && end.After(n.Noticed) && end.Before(n.Deadline) {
		n.Deadline = end.UTC()
	}
	n.Instances, err = r.readInstance(n.Instances)
	return err
}
