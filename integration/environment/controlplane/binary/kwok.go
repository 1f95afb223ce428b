package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	nodestages "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	podstages "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

// runKwok starts kwok as its own main does: the configuration files are read
// before the command exists, because the flags' defaults come from them.
func runKwok() int {
	// Kubernetes' packages put a --version flag into the process-wide set, and
	// kwok's command has its own and refuses to start over the clash.
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ContinueOnError)

	global := pflag.NewFlagSet("global", pflag.ContinueOnError)
	global.ParseErrorsAllowlist.UnknownFlags = true
	global.Usage = func() {}

	ctx, logger := log.InitFlags(signals.SetupSignalContext(), global)
	ctx, err := config.InitFlags(ctx, global)
	if err != nil {
		logger.Error("Reading kwok's configuration", "err", err)
		return 1
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(global)
	if err := command.ExecuteContext(ctx); err != nil {
		logger.Error("Running kwok", "err", err)
		return 1
	}
	return 0
}

// printStages writes the stages of an ordinary life: a node becomes ready, a
// pod runs, a job's pod completes, a deleted pod goes. The "fast" set has no
// artificial delays.
func printStages() int {
	stages := []string{
		nodestages.DefaultNodeInit,
		podstages.DefaultPodReady,
		podstages.DefaultPodComplete,
		podstages.DefaultPodDelete,
	}
	if _, err := fmt.Fprintln(os.Stdout, strings.Join(stages, "\n---\n")); err != nil {
		return 1
	}
	return 0
}
