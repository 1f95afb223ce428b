// Command binary is a whole Kubernetes control plane in one executable: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler and kwok.
//
// It decides by the name it was started under, as busybox does, so that five
// symlinks to one file are five programs. One link instead of five saves most
// of the time and of the disk, since the programs share nearly all their code.
//
// The sixth name, kwok-stages, prints the stages that kwok ships in its own
// module but no longer applies by itself: the program that starts kwok hands
// them over as configuration, and they are then always of kwok's own version.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	_ "time/tzdata" // CronJobs may name a time zone on a machine that has no database of them.

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// programs are the names this executable answers to.
var programs = map[string]func() int{
	"etcd":                    runEtcd,
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kwok":                    runKwok,
	"kwok-stages":             printStages,
}

func main() {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	program, known := programs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "%q is none of etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, kwok-stages: start me through a symlink of one of those names\n", name)
		os.Exit(2)
	}
	dieWithParent()
	os.Exit(program())
}

// dieWithParent ends this process when whoever started it has gone, whichever
// way it went. The parent holds the other end of standard input and never
// writes: an end of file means that the kernel closed it on the parent's death.
// Linux can signal a child by itself; other systems have nothing but this.
func dieWithParent() {
	if os.Getenv("JOIST_LIFELINE") != "stdin" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}

func runEtcd() int {
	etcdmain.Main(os.Args) // exits by itself when it fails
	return 0
}
