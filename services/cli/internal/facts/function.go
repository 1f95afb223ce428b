package facts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/shared/settings"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// function looks at the function that works on a service's queue: the one that an event
// source mapping of the queue names, the cluster's own or one that clusters share. Where
// nothing works on the queue, it is the one that should; without that the service polls.
func (g *gathering) function(ctx context.Context, client *lambda.Client, q topology.Queue, arn string) {
	g.look("the function of the queue "+q.Name, "lambda:GetFunctionConfiguration and lambda:ListEventSourceMappings", func() error {
		out, err := mapped(ctx, client, arn)
		if err != nil {
			return err
		}
		told, err := configuration(ctx, client, cmp.Or(out.Name, g.Plan.Function(q.Service)))
		switch {
		case err != nil:
			return err
		case told != nil:
			g.configured(ctx, &out, told, q)
		case out.Mapped:
			// Mappings outlive their functions.
			out.Missing = true
		default:
			g.unmapped(ctx, client, q)
			return nil
		}
		g.works(q, &out)
		return nil
	})
}

// works writes down the function that works on a queue.
func (g *gathering) works(q topology.Queue, fn *doctor.Function) {
	g.set(func(f *doctor.Facts) {
		if f.Functions == nil {
			f.Functions = map[string]*doctor.Function{}
		}
		f.Functions[q.Service] = fn
	})
}

// mapped is the function that a queue's mapping names. Of several an enabled one counts.
func mapped(ctx context.Context, client *lambda.Client, queue string) (doctor.Function, error) {
	var out doctor.Function
	for pages := lambda.NewListEventSourceMappingsPaginator(client, &lambda.ListEventSourceMappingsInput{EventSourceArn: &queue}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return out, err
		}
		for i := range page.EventSourceMappings {
			m := &page.EventSourceMappings[i]
			if !out.Enabled {
				out.Name, out.Mapped, out.Enabled = nameOf(aws.ToString(m.FunctionArn)), true, strings.HasPrefix(aws.ToString(m.State), "Enabl")
			}
		}
	}
	return out, nil
}

// nameOf is the name in a function's ARN,
// arn:partition:lambda:region:account:function:name, with a version or without.
func nameOf(arn string) string {
	if fields := strings.Split(arn, ":"); len(fields) > 6 {
		return fields[6]
	}
	return arn
}

// configuration is a function's, or nil where there is none.
func configuration(ctx context.Context, client *lambda.Client, name string) (*lambda.GetFunctionConfigurationOutput, error) {
	told, err := client.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &name})
	if missing(err) {
		return nil, nil
	}
	return told, err
}

// unmapped looks for the function that clusters share where no mapping names it: the role
// that it takes for the cluster knows whom it trusts, and the function has its role's name.
// Each is a look of its own, for whoever may do the one may lack the right to do the other.
func (g *gathering) unmapped(ctx context.Context, client *lambda.Client, q topology.Queue) {
	role := g.Plan.Prefix + "-joist-" + q.Service
	g.look("the role "+role, "iam:GetRole", func() error {
		trust, err := g.trustOf(ctx, role)
		if err != nil || trust == nil {
			return err
		}
		taker := doctor.Taker(*trust)
		if taker == "" {
			return nil
		}
		g.look("the function that takes the role "+role, "lambda:GetFunctionConfiguration", func() error {
			told, err := configuration(ctx, client, path.Base(taker))
			if err != nil || told == nil {
				return err
			}
			var out doctor.Function
			g.configured(ctx, &out, told, q)
			g.works(q, &out)
			return nil
		})
		return nil
	})
}

// configured reads a function's configuration, and looks at the role that it takes for the
// cluster.
func (g *gathering) configured(ctx context.Context, out *doctor.Function, told *lambda.GetFunctionConfigurationOutput, q topology.Queue) {
	out.Name, out.Timeout = aws.ToString(told.FunctionName), time.Duration(aws.ToInt32(told.Timeout))*time.Second
	environment := told.Environment
	if environment == nil {
		environment = &types.EnvironmentResponse{}
	}
	if environment.Error != nil {
		g.miss("what the function "+out.Name+" is told", errors.New(aws.ToString(environment.Error.Message)), "")
		return
	}
	out.Role, out.Bucket = aws.ToString(told.Role), environment.Variables[settings.Bucket]
	if list, there := environment.Variables[settings.Clusters]; there {
		out.Shared = sharedBy(list, g.Plan.Cluster, q.Name)
	}
	if out.Shared == nil || out.Shared.Role == "" {
		return
	}
	g.look("the role "+out.Shared.Role, "iam:GetRole", func() error {
		trust, err := g.trustOf(ctx, out.Shared.Role)
		g.set(func(*doctor.Facts) { out.Shared.Trust = trust })
		return err
	})
}

// sharedBy is what a list of clusters says of one with its queue. A list that cannot be
// read says nothing: the function does not start with it.
func sharedBy(list, cluster, queue string) *doctor.Shared {
	var entries []map[string]string
	_ = json.Unmarshal([]byte(list), &entries)
	for _, e := range entries {
		if e[settings.ClusterName] == cluster && path.Base(e[settings.QueueURL]) == queue {
			return &doctor.Shared{Told: true, Role: e[settings.RoleARN]}
		}
	}
	return &doctor.Shared{}
}
