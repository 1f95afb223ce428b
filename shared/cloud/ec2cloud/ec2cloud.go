// Package ec2cloud is the adapter from package cloud to EC2.
//
// It translates and decides nothing: every call reads all pages, and every
// error gets its kind and hint from package awsfault. Three things are its own:
//
//   - CreateFleet is tried once. The ClientToken makes a repetition safe, and
//     who repeats is the caller's decision, so the SDK's retries are off.
//   - A call has Timeout to answer. A write that does not is fault.Unknown.
//   - EC2 refuses a whole TerminateInstances for one id that it does not know;
//     here that id is taken out and the others are ended.
//
// SSM, EKS and IAM have adapters of their own, so that a service links only
// what it calls.
package ec2cloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/aws/awshttp"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// Timeout is how long one call may take, retries of the SDK included. A
// fleet of some hundred instances answers within 20 s; the caller's context may
// end sooner.
const Timeout = cloud.CallTimeout

const (
	// page is the most items that a Describe call returns at once.
	page = 1000
	// filterValues is the most values that EC2 takes in one filter.
	filterValues = 200
	// batch is the most ids that one write takes.
	batch = 1000
)

// Cloud calls EC2 with one client.
type Cloud struct {
	client *ec2.Client
}

var (
	_ cloud.Launcher = Cloud{}
	_ cloud.Network  = Cloud{}
	_ cloud.Statuses = Cloud{}
)

// New makes a Cloud from the AWS configuration that main has loaded.
func New(config aws.Config) Cloud {
	return Cloud{client: ec2.NewFromConfig(awshttp.WithSafeBodies(config))}
}

// call runs one API call under the timeout and gives its error a kind.
func call[T any](ctx context.Context, what awsfault.Call, do func(context.Context) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		// Nothing was sent: for a write too this is no Unknown.
		return none, awsfault.ReadCall(what.Op, what.Action).Wrap(err)
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	out, err := do(ctx)
	if err != nil {
		return none, what.Wrap(err)
	}
	return out, nil
}

// pager is what all of the SDK's paginators are.
type pager[T any] interface {
	HasMorePages() bool
	NextPage(ctx context.Context, options ...func(*ec2.Options)) (T, error)
}

// all reads all pages.
func all[T any](ctx context.Context, what awsfault.Call, pages pager[T], each func(T)) error {
	for pages.HasMorePages() {
		out, err := call(ctx, what, func(ctx context.Context) (T, error) { return pages.NextPage(ctx) })
		if err != nil {
			return err
		}
		each(out)
	}
	return nil
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}

// once lets every id pass once, for several calls may find the same thing.
func once() func(id string) bool {
	seen := map[string]bool{}
	return func(id string) bool {
		first := !seen[id]
		seen[id] = true
		return first
	}
}
