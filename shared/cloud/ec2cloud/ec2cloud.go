// Package ec2cloud is the adapter from package cloud to EC2.
//
// It reads all pages, and package awsfault gives every error its kind and hint. It adds three rules:
//
//   - CreateFleet is tried once, without the SDK's retries. The ClientToken makes
//     a retry safe, and the caller decides about it.
//   - A call has a timeout (Timeout). A write that times out is fault.Unknown.
//   - EC2 rejects a whole TerminateInstances because of one unknown id; the
//     adapter removes that id and terminates the others.
//
// SSM, EKS and IAM have their own adapters, so that a service links only what it calls.
package ec2cloud

import (
	"context"
	"iter"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/aws/awshttp"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// Timeout is the timeout of one call, including the SDK's retries. A fleet of some hundred instances responds within
// 20 s; the caller's context may end sooner.
const Timeout = cloud.CallTimeout

const (
	// page is the maximum number of items in one Describe response.
	page = 1000
	// filterValues is the maximum number of filter values in one call. The values of all its filters count.
	filterValues = 200
	// batch is the maximum number of ids in one write.
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

// New returns a Cloud with an AWS configuration.
func New(config aws.Config) Cloud {
	return Cloud{client: ec2.NewFromConfig(awshttp.WithSafeBodies(config))}
}

// call makes one API call with the timeout and gives its error a kind.
func call[T any](ctx context.Context, what awsfault.Call, do func(context.Context) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		// Nothing was sent, so this is not Unknown, even for a write.
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

// pager is the interface of the SDK's paginators.
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

// chunkIDs divides ids among calls, so that none has too many filter values. Each call also has the other filters.
func chunkIDs(ids []string, others []types.Filter) iter.Seq[[]string] {
	size := filterValues
	for _, f := range others {
		size -= len(f.Values)
	}
	return slices.Chunk(ids, max(1, size))
}

// once returns a function that reports whether an id is new, because several calls may return the same resource.
func once() func(id string) bool {
	seen := map[string]bool{}
	return func(id string) bool {
		first := !seen[id]
		seen[id] = true
		return first
	}
}
