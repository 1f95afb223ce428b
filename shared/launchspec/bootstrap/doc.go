// Package bootstrap writes user data: what an instance reads when it first boots,
// and by which it joins the cluster as the node that was planned. Each family of
// images reads another format, and users may have written some of it themselves.
//
// The invariants: equal inputs give equal bytes; where a user's data and ours speak
// of the same setting, ours wins, because the plan counted on it; whatever else the
// user wrote is kept; and what EC2 or the machine would refuse is refused here, with
// the place and the remedy. Package userdata reads it all back, and proves it.
package bootstrap
