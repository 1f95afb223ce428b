// Package userdata parses an instance's user data like the instance does, and returns how it joins the
// cluster.
//
// It is the counterpart of package bootstrap for tests: simulated kubelets use it to join nodes, so
// that a label in the wrong place of the user data is missing on the node.
//
// Parse rejects data that the instance would reject, and returns why the instance would not join.
package userdata
