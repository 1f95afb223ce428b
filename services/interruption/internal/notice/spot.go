package notice

import "time"

// Warning is how long before the end EC2 warns. The deadline that follows from
// it is absolute: when AWS said so plus this, however long it travelled.
const Warning = 120 * time.Second

// spot reads the warning that a spot instance is taken back (B176).
func spot(r *reading, n *Notice) (err error) {
	n.Detail, n.Deadline = r.said(action), n.Noticed.Add(Warning)
	n.Instances, err = r.one(n.Instances)
	return err
}

// rebalance reads the recommendation to leave a spot instance (B179). Nothing
// ends by it.
func rebalance(r *reading, n *Notice) (err error) {
	n.Instances, err = r.one(n.Instances)
	return err
}
