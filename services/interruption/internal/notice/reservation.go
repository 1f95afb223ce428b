package notice

import "time"

// reservation reads the warning that the owner of a capacity reservation takes
// an instance back (B180). If it names the end, the earlier of the two counts;
// an end before the warning is none.
func reservation(r *reading, n *Notice) (err error) {
	n.Detail, n.Deadline = r.said(action), n.Noticed.Add(Warning)
	if end, err := time.Parse(time.RFC3339, string(r.text(ends))); err == nil && end.After(n.Noticed) && end.Before(n.Deadline) {
		n.Deadline = end.UTC()
	}
	n.Instances, err = r.one(n.Instances)
	return err
}
