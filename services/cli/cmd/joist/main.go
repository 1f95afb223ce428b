// Command joist is the person's door to Joist.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/joist-autoscaler/joist/services/cli"
)

// gcPercent lets the heap grow to five times what lives on it: a command is over
// before collecting more often would pay.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A plan is thought out in one go: whoever does not want to wait for it
	// interrupts a second time.
	context.AfterFunc(ctx, stop)
	code := cli.Run(ctx, cli.Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), Now: time.Now, Build: build(),
	})
	stop()
	os.Exit(code)
}

// build is what the go command wrote into the binary.
func build() cli.Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cli.Build{}
	}
	out := cli.Build{Version: info.Main.Version}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			out.Commit = setting.Value
		}
	}
	return out
}
