// Package release makes a release of the commit in the work tree, installs its artifacts, and runs the quickstart
// on them: `make release-dry-run`. Nothing leaves the machine: images and charts go to a registry on loopback, modules to a
// file proxy, and files to dist/.
//
// The command is installed with go install, the charts with Helm from the registry, each service in the cluster is the
// binary of its image in the registry, and the functions are the files of their zips. Package testbed runs them
// between a real Kubernetes control plane and AWS's protocols on loopback.
//
// Not real are: the machines, and with them kubelets, so that the suite starts the binary of an image by itself, with
// the environment and a token of the service account of the chart's Deployment, but not with the user, the read-only
// file system and the limits of its container. Lambda runs the functions on arm64. On another machine the suite inspects
// those zips, and runs the functions of zips that a dry run makes in addition for the machine's own architecture.
package release
