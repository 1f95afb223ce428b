// Package bootstrap writes user data, with which an instance joins the cluster as the planned node at
// its first boot. Each image family has its own format, and users may add their own data.
//
// Equal inputs give equal bytes. If the user's data and Joist's set the same setting, Joist's wins,
// because the plan depends on it; other user data is kept. Data that EC2 or the instance would reject
// is rejected here, with the place and the correction. Tests read the result with package userdata.
package bootstrap
