// Command controlplane builds and runs the tests' Kubernetes control plane by hand:
// kubectl and other clients use the kubeconfig that it prints.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/controlplane"
)

const usage = `usage:
  controlplane build          compile the programs into the cache
  controlplane run [flags]    run one until ^C`

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := dispatch(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		cancel()
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "build":
		return build(ctx)
	case "run":
		return run(ctx, args[1:])
	default:
		return fmt.Errorf("unknown command %q\n%s", args[0], usage)
	}
}

// build prints only the folder to standard output, for KUBEBUILDER_ASSETS=$(controlplane
// build).
func build(ctx context.Context) error {
	dir, err := controlplane.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	fmt.Println(dir)
	return nil
}

func run(ctx context.Context, args []string) error {
	var options controlplane.Options
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	flags.StringVar(&options.CRDs, "crds", "", "folder of CustomResourceDefinitions to install")
	flags.StringVar(&options.Logs, "logs", "", "folder for the programs' logs, which is not deleted (default: a temporary one)")
	flags.BoolVar(&options.NoKwok, "no-kwok", false, "do not simulate nodes and pods")
	flags.BoolVar(&options.NoRBAC, "no-rbac", false, "allow every request")
	if err := flags.Parse(args); err != nil {
		return err
	}
	began := time.Now()
	cp, err := controlplane.Start(ctx, options)
	if err != nil {
		return err
	}
	fmt.Printf("ready in %s at %s, logs in %s; ^C ends it\n\nexport KUBECONFIG=%s\n",
		time.Since(began).Round(100*time.Millisecond), cp.Config.Host, cp.Logs, cp.Kubeconfig)
	select {
	case <-ctx.Done():
	case <-cp.Died():
	}
	return cp.Stop()
}
