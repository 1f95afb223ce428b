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

// readFunction reads the function that consumes a service's queue: the one in the queue's
// event source mapping, which may be shared. Without a mapping it reads the function that
// should exist; if neither exists, the service polls.
func (g *collector) readFunction(ctx context.Context, client *lambda.Client, q topology.Queue, arn string) {
	g.tryCall("the function of the queue "+q.Name, "lambda:GetFunctionConfiguration and lambda:ListEventSourceMappings", func() error {
		out, err := findMappedFunction(ctx, client, arn)
		if err != nil {
			return err
		}
		config, err := readConfiguration(ctx, client, cmp.Or(out.Name, g.Plan.FunctionName(q.Service)))
		switch {
		case err != nil:
			return err
		case config != nil:
			g.readFunctionConfig(ctx, &out, config, q)
		case out.Mapped:
			// The deletion of a function does not delete its mappings.
			out.Missing = true
		default:
			g.readUnmapped(ctx, client, q)
			return nil
		}
		g.recordFunction(q, &out)
		return nil
	})
}

// recordFunction records the function that consumes a queue.
func (g *collector) recordFunction(q topology.Queue, fn *doctor.Function) {
	g.setFact(func(f *doctor.Facts) {
		if f.Functions == nil {
			f.Functions = map[string]*doctor.Function{}
		}
		f.Functions[q.Service] = fn
	})
}

// findMappedFunction returns the function in a queue's event source mapping, preferring an
// enabled mapping.
func findMappedFunction(ctx context.Context, client *lambda.Client, queue string) (doctor.Function, error) {
	var out doctor.Function
	for pages := lambda.NewListEventSourceMappingsPaginator(client, &lambda.ListEventSourceMappingsInput{EventSourceArn: &queue}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return out, err
		}
		for i := range page.EventSourceMappings {
			m := &page.EventSourceMappings[i]
			if !out.Enabled {
				out.Name, out.Mapped, out.Enabled = functionName(aws.ToString(m.FunctionArn)), true, strings.HasPrefix(aws.ToString(m.State), "Enabl")
			}
		}
	}
	return out, nil
}

// functionName returns the name in a function's ARN,
// arn:partition:lambda:region:account:function:name[:version].
func functionName(arn string) string {
	if fields := strings.Split(arn, ":"); len(fields) > 6 {
		return fields[6]
	}
	return arn
}

// readConfiguration reads the configuration of a function; nil if it does not exist.
func readConfiguration(ctx context.Context, client *lambda.Client, name string) (*lambda.GetFunctionConfigurationOutput, error) {
	config, err := client.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &name})
	if isMissing(err) {
		return nil, nil
	}
	return config, err
}

// readUnmapped reads a shared function without a mapping. It finds the function's role in the trust
// policy of the role that the function assumes for the cluster; the role has the function's name.
// Each read is recorded separately, because the caller may have only one of the permissions.
func (g *collector) readUnmapped(ctx context.Context, client *lambda.Client, q topology.Queue) {
	role := g.Plan.Prefix + "-joist-" + q.Service
	g.tryCall("the role "+role, "iam:GetRole", func() error {
		trust, err := g.readTrust(ctx, role)
		if err != nil || trust == nil {
			return err
		}
		assuming := doctor.AssumingRole(*trust)
		if assuming == "" {
			return nil
		}
		g.tryCall("the function that assumes the role "+role, "lambda:GetFunctionConfiguration", func() error {
			config, err := readConfiguration(ctx, client, path.Base(assuming))
			if err != nil || config == nil {
				return err
			}
			var out doctor.Function
			g.readFunctionConfig(ctx, &out, config, q)
			g.recordFunction(q, &out)
			return nil
		})
		return nil
	})
}

// readFunctionConfig evaluates a function's configuration, and reads the role that it assumes
// for the cluster.
func (g *collector) readFunctionConfig(ctx context.Context, out *doctor.Function, config *lambda.GetFunctionConfigurationOutput, q topology.Queue) {
	out.Name, out.Timeout = aws.ToString(config.FunctionName), time.Duration(aws.ToInt32(config.Timeout))*time.Second
	environment := config.Environment
	if environment == nil {
		environment = &types.EnvironmentResponse{}
	}
	if environment.Error != nil {
		g.recordSkipped("the settings of the function "+out.Name, errors.New(aws.ToString(environment.Error.Message)), "")
		return
	}
	out.Role, out.Bucket = aws.ToString(config.Role), environment.Variables[settings.Bucket]
	variables := environment.Variables
	if list, isShared := variables[settings.Clusters]; isShared {
		entry := findEntry(list, g.Plan.Cluster, q.Name)
		out.Shared = &doctor.Shared{HasEntry: entry != nil, Role: entry[settings.RoleARN]}
		variables = maps.Clone(variables)
		maps.Copy(variables, entry)
	}
	if q.Service == "catalog" {
		g.setFact(func(f *doctor.Facts) { f.SelfManaged = parseSelfManaged(out.Name, variables) })
	}
	if out.Shared == nil || out.Shared.Role == "" {
		return
	}
	g.startCall("the role "+out.Shared.Role, "iam:GetRole", func() error {
		trust, err := g.readTrust(ctx, out.Shared.Role)
		g.setFact(func(*doctor.Facts) { out.Shared.Trust = trust })
		return err
	})
}

// findEntry returns the entry of a cluster with its queue in a list of clusters; nil if there
// is no such entry or the list is invalid. A function does not start with an invalid list.
func findEntry(list, cluster, queue string) map[string]string {
	var entries []map[string]string
	_ = json.Unmarshal([]byte(list), &entries)
	for _, e := range entries {
		if e[settings.ClusterName] == cluster && path.Base(e[settings.QueueURL]) == queue {
			return e
		}
	}
	return nil
}

// parseSelfManaged evaluates the catalog's variables; nil if EKS runs the control plane, or if
// the value is invalid. The catalog does not start with an invalid value.
func parseSelfManaged(function string, variables map[string]string) *doctor.SelfManaged {
	if eks, err := strconv.ParseBool(variables[settings.ControlPlane]); err != nil || eks {
		return nil
	}
	return &doctor.SelfManaged{Function: function, Variables: variables}
}
