// Command joist inspects a cluster's Joist, simulates its plans and replays failed messages.
package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/s3blob"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/build"
)

// gcPercent lets the heap grow to five times the live heap: a short command does not gain from
// more frequent collection.
const gcPercent = 400

// memoryLimit is the size in bytes from which on the garbage collector runs more often, so that a plan for 100,000 pods needs
// less than 1 GiB.
const memoryLimit = 896 << 20

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Planning does not check the context: a second interrupt ends the process.
	context.AfterFunc(ctx, stop)
	code := cli.Run(ctx, cli.Env{
		Program: os.Args[0], Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Terminal: measureTerminal,
		Environ: os.Environ(), Now: time.Now, Build: build.Read(), Store: openBucket, AWS: func(ctx context.Context) (aws.Config, error) { return loadAWS(ctx) },
		Kube: openCluster, Contexts: listContexts, Live: openLive, Catalogue: readCatalogue, Run: runProgram,
	})
	stop()
	os.Exit(code)
}

// loadAWS loads the AWS configuration of the caller, with options.
func loadAWS(ctx context.Context, options ...func(*config.LoadOptions) error) (aws.Config, error) {
	const what = "loading the AWS configuration"
	// The SDK's warnings are discarded: the error has every failure.
	found, err := config.LoadDefaultConfig(ctx, append(options, config.WithLogger(logging.Nop{}))...)
	if err != nil {
		return aws.Config{}, fault.E(what, fault.Invalid, err).WithHint("check AWS_PROFILE and the files in ~/.aws")
	}
	found.AppID = cmp.Or(found.AppID, build.UserAgent("joist"))
	if found.Region == "" {
		return aws.Config{}, fault.F(what, fault.Invalid, "no region is set").WithHint("set AWS_REGION to the region of the cluster")
	}
	if _, err := found.Credentials.Retrieve(ctx); err != nil {
		return aws.Config{}, fault.E("finding AWS credentials", fault.Invalid, credentialsError(err)).
			WithHint("set AWS_PROFILE or run aws sso login; check with aws sts get-caller-identity")
	}
	return found, nil
}

// credentialsError returns the cause of missing credentials. The SDK asks the instance
// metadata service last, so its error or timeout means that no other source has credentials.
func credentialsError(err error) error {
	call, isCall := errors.AsType[*smithy.OperationError](err)
	if isCall && call.ServiceID == "ec2imds" || errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no credentials in the environment, in ~/.aws, or from an instance role")
	}
	return err
}

// openBucket opens a bucket.
func openBucket(ctx context.Context, name, prefix string) (blob.Store, error) {
	found, err := loadAWS(ctx)
	if err != nil {
		return nil, err
	}
	return s3blob.New(found, name, prefix, "--store"), nil
}
