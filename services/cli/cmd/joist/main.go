// Command joist is the person's door to Joist.
package main

import (
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
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/s3blob"
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
		Environ: os.Environ(), Now: time.Now, Build: build(), Store: bucket, AWS: account, Kube: kube, Run: run,
	})
	stop()
	os.Exit(code)
}

// account is AWS as it knows whoever runs the command.
func account(ctx context.Context) (aws.Config, error) {
	const what = "reading AWS's configuration"
	// The SDK's own warnings go nowhere: what fails is in the error.
	found, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return aws.Config{}, fault.E(what, fault.Invalid, err).WithHint("see whether AWS_PROFILE and the files in ~/.aws are right")
	}
	if found.Region == "" {
		return aws.Config{}, fault.F(what, fault.Invalid, "no region is set").WithHint("set AWS_REGION to that of the cluster")
	}
	if _, err := found.Credentials.Retrieve(ctx); err != nil {
		return aws.Config{}, fault.E("finding AWS credentials", fault.Invalid, credentialsError(err)).
			WithHint("set AWS_PROFILE, or run aws sso login, until aws sts get-caller-identity works")
	}
	return found, nil
}

// credentialsError is the cause in words. The SDK asks the instance's metadata service last, so
// that an error of it, or no answer in time, means that no other place has credentials.
func credentialsError(err error) error {
	call, isCall := errors.AsType[*smithy.OperationError](err)
	if isCall && call.ServiceID == "ec2imds" || errors.Is(err, context.DeadlineExceeded) {
		return errors.New("there are none in the environment, in ~/.aws, or from the role of an instance")
	}
	return err
}

// bucket opens a bucket.
func bucket(ctx context.Context, name, prefix string) (blob.Store, error) {
	found, err := account(ctx)
	if err != nil {
		return nil, err
	}
	return s3blob.New(found, name, prefix, "--store"), nil
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
