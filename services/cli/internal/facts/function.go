package facts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// function looks at the function that works on a service's queue: the one that an event
// source mapping of the queue names, the cluster's own or one that clusters share. Where
// nothing works on the queue, it is the one that should; without that the service polls.
func (g *collector) function(ctx context.Context, client *lambda.Client, q topology.Queue, arn string) {
	g.try("the function of the queue "+q.Name, "lambda:GetFunctionConfiguration and lambda:ListEventSourceMappings", func() error {
		out, err := mappedFunction(ctx, client, arn)
		if err != nil {
			return err
		}
		told, err := readConfiguration(ctx, client, cmp.Or(out.Name, g.Plan.Function(q.Service)))
		switch {
		case err != nil:
			return err
		case told != nil:
			g.readFunctionConfig(ctx, &out, told, q)
		case out.Mapped:
			// Mappings outlive their functions.
			out.Missing = true
		default:
			g.readUnmapped(ctx, client, q)
			return nil
		}
		g.recordFunction(q, &out)
		return nil
	})
}

// recordFunction writes down the function that works on a queue.
func (g *collector) recordFunction(q topology.Queue, fn *doctor.Function) {
	g.setFact(func(f *doctor.Facts) {
		if f.Functions == nil {
			f.Functions = map[string]*doctor.Function{}
		}
		f.Functions[q.Service] = fn
	})
}

// mappedFunction is the function that a queue's mapping names. Of several an enabled one counts.
func mappedFunction(ctx context.Context, client *lambda.Client, queue string) (doctor.Function, error) {
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

// readConfiguration is a function's, or nil where there is none.
func readConfiguration(ctx context.Context, client *lambda.Client, name string) (*lambda.GetFunctionConfigurationOutput, error) {
	told, err := client.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &name})
	if isMissing(err) {
		return nil, nil
	}
	return told, err
}

// readUnmapped looks for the function that clusters share where no mapping names it: the role
// that it takes for the cluster knows whom it trusts, and the function has its role's name.
// Each is a look of its own, for whoever may do the one may lack the right to do the other.
func (g *collector) readUnmapped(ctx context.Context, client *lambda.Client, q topology.Queue) {
	role := g.Plan.Prefix + "-joist-" + q.Service
	g.try("the role "+role, "iam:GetRole", func() error {
		trust, err := g.trustOf(ctx, role)
		if err != nil || trust == nil {
			return err
		}
		taker := doctor.Taker(*trust)
		if taker == "" {
			return nil
		}
		g.try("the function that assumes the role "+role, "lambda:GetFunctionConfiguration", func() error {
			told, err := readConfiguration(ctx, client, path.Base(taker))
			if err != nil || told == nil {
				return err
			}
			var out doctor.Function
			g.readFunctionConfig(ctx, &out, told, q)
			g.recordFunction(q, &out)
			return nil
		})
		return nil
	})
}

// readFunctionConfig reads a function's configuration, and looks at the role that it takes for the
// cluster.
func (g *collector) readFunctionConfig(ctx context.Context, out *doctor.Function, told *lambda.GetFunctionConfigurationOutput, q topology.Queue) {
	out.Name, out.Timeout = aws.ToString(told.FunctionName), time.Duration(aws.ToInt32(told.Timeout))*time.Second
	environment := told.Environment
	if environment == nil {
		environment = &types.EnvironmentResponse{}
	}
	if environment.Error != nil {
		g.recordSkipped("the settings of the function "+out.Name, errors.New(aws.ToString(environment.Error.Message)), "")
		return
	}
	out.Role, out.Bucket = aws.ToString(told.Role), environment.Variables[settings.Bucket]
	variables := environment.Variables
	if list, there := variables[settings.Clusters]; there {
		entry := entryOf(list, g.Plan.Cluster, q.Name)
		out.Shared = &doctor.Shared{Told: entry != nil, Role: entry[settings.RoleARN]}
		variables = maps.Clone(variables)
		maps.Copy(variables, entry)
	}
	if q.Service == "catalog" {
		g.setFact(func(f *doctor.Facts) { f.SelfManaged = selfManaged(out.Name, variables) })
	}
	if out.Shared == nil || out.Shared.Role == "" {
		return
	}
	g.start("the role "+out.Shared.Role, "iam:GetRole", func() error {
		trust, err := g.trustOf(ctx, out.Shared.Role)
		g.setFact(func(*doctor.Facts) { out.Shared.Trust = trust })
		return err
	})
}

// entryOf is the entry of one cluster with its queue in a list of clusters; nil where there
// is none. A list that cannot be read has none: the function does not start with it.
func entryOf(list, cluster, queue string) map[string]string {
	var entries []map[string]string
	_ = json.Unmarshal([]byte(list), &entries)
	for _, e := range entries {
		if e[settings.ClusterName] == cluster && path.Base(e[settings.QueueURL]) == queue {
			return e
		}
	}
	return nil
}

// selfManaged reads the catalog's variables; nil where they leave EKS the control plane. A
// value that is no boolean does so, too: the catalog does not start with it.
func selfManaged(function string, variables map[string]string) *doctor.SelfManaged {
	if eks, err := strconv.ParseBool(variables[settings.ControlPlane]); err != nil || eks {
		return nil
	}
	return &doctor.SelfManaged{Function: function, Variables: variables}
}
