// Command kubectl is Kubernetes' own kubectl, of the version that the tests use, for tests that run the commands of a page.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() { cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()) }
