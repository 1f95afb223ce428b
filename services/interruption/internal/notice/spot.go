package notice

import (
	"time"
)

// Warning is how long before the end EC2 warns. The deadline that follows from
// it is absolute: when AWS said so plus this, however long it travelled.
const Warning = 120 * time.Second

// spot reads the warning that a spot instance is taken back.
func spot(r *reading, n *Notice) (err error) {
	n.Detail, n.Deadline = r.said(action), n.Noticed.Add(Warning)
	n.Instances, err = r.one(n.Instances)
	return err
}

// rebalance reads the recommendation to leave a spot instance. Nothing
// ends by it.
func rebalance(r *reading, n *Notice) (err error) {
	n.Instances, err = r.one(n.Instances)
	return err
}

// reservation reads the warning that the owner of a capacity reservation takes
// an instance back. If it names the end, the earlier of the two counts;
// an end before the warning is none.
func reservation(r *reading, n *Notice) (err error) {
	n.Detail, n.Deadline = r.said(action), n.Noticed.Add(Warning)
	if end, err := time.Parse(time.RFC3339, string(r.text(ends))); err == nil && end.After(n.Noticed) && end.Before(n.Deadline) {
		n.Deadline = end.UTC()
	}
	n.Instances, err = r.one(n.Instances)
	return err
}
