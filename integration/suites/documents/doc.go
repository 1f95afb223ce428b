// Package documents follows published tutorials about Karpenter from top to bottom, with Joist in Karpenter's place: the
// manifests and Helm values as printed, through joist convert, Helm and kubectl, on a real Kubernetes control plane, Joist's
// binaries and AWS's protocols on a loopback port (package testbed describes which parts are real).
//
// Each document is a list of its own steps in their order (file documents_test.go). A step belongs to a topic, which is a row of the
// page deploy/docs/tutorials.md, and runs here, or names the tests that cover it where it cannot run: eksctl, IAM and
// CloudFormation need an account. The documents share one control plane and one account. Each installs the chart into its own namespace, with
// its own values, and removes everything at its end.
//
// The manifests are those of the suite cli and of the package convert, which test each of them alone.
package documents
