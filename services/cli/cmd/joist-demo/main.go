// Command joist-demo is `joist demo` without the other commands, which link the AWS SDK and
// client-go: `make demo` compiles it on a machine with cold caches.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/joist-autoscaler/joist/services/cli/internal/demo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	command := demo.Command()
	command.Use = "joist-demo"
	command.SilenceUsage, command.SilenceErrors = true, true
	err := command.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "joist-demo:", err)
		os.Exit(1)
	}
}
