// Command modules makes the Go modules of a release and prints their tags; see package modules.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/joist-autoscaler/joist/integration/release/modules"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := release(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "modules:", err)
		cancel()
		os.Exit(1)
	}
}

func release(ctx context.Context) error {
	var o modules.CutOptions
	var tag bool
	flag.StringVar(&o.Version, "version", "", "version such as v0.1.0; a version for a dry run by default")
	flag.StringVar(&o.Repository, "repository", ".", "folder of the repository, whose HEAD is released")
	flag.StringVar(&o.Scratch, "scratch", "", "new folder for the release commit and the proxy; it remains")
	flag.BoolVar(&tag, "tag", false, "add the tags to the repository; nothing is pushed")
	flag.Parse()
	began := time.Now()
	r, err := modules.Cut(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "release commit %s of %s (%.1f s)\n", r.Commit, r.Source, time.Since(began).Seconds())
	defer func() {
		if err := r.Clean(context.WithoutCancel(ctx)); err != nil {
			fmt.Fprintln(os.Stderr, "modules:", err)
		}
	}()
	for _, m := range r.Modules {
		began := time.Now()
		if err := r.Build(ctx, m); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "built %s@%s (%.1f s)\n", m.Path, r.Version, time.Since(began).Seconds())
	}
	if tag {
		if err := r.Tag(ctx, o.Repository); err != nil {
			return err
		}
	}
	for _, tag := range r.Tags() {
		fmt.Println(tag, r.Commit)
	}
	fmt.Fprintf(os.Stderr, "proxy: GOPROXY=file://%s\n", r.Proxy)
	return nil
}
