package stack_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Each service starts with the environment of its function, for exactly the clusters of
// the stack. Each cluster has the queue that the function reads, the DLQ,
// the bus and the role that the stack creates for it.
func TestFunctionEnvironments(t *testing.T) {
	forEachTemplate(t, func(t *testing.T, name string, in synthesis) {
		c := configOf(t, contexts[name])
		functions, roles := by("FunctionName", in.ofType(t, "AWS::Lambda::Function")), by("RoleName", in.ofType(t, "AWS::IAM::Role"))
		queues := by("QueueName", in.ofType(t, "AWS::SQS::Queue"))
		reads := map[string][]string{}
		for _, m := range in.ofType(t, "AWS::Lambda::EventSourceMapping") {
			function := template.Name(m.text("FunctionName"))
			reads[function] = append(reads[function], template.Name(m.text("EventSourceArn")))
		}
		for _, service := range topology.ExternalServices {
			recorded := map[string]bool{}
			for _, k := range c.Clusters {
				function := k.Plan.FunctionName(service)
				for _, s := range checkStartable(t, functions[function], service) {
					if s.Cluster.Name != k.Name {
						continue
					}
					recorded[k.Name] = true
					q, _ := k.Plan.Queue(service)
					if !slices.Contains(reads[function], q.Name) || template.Name(s.DeadLetterURL) != q.Dead || queues[q.Dead].Type == "" || s.Bus != k.Plan.Bus ||
						service != "interruption" && (s.Prefix != k.Name || s.Bucket == "") {
						t.Errorf("%s reads %v, but is configured with %+v", function, reads[function], s)
					}
					if c.SharedFunctions && (template.Name(s.QueueURL) != q.Name || s.RoleARN != "arn:aws:iam::111122223333:role/"+k.Name+"-joist-"+service || roles[template.Name(s.RoleARN)].Type == "") {
						t.Errorf("for %s %s has the role %s and the queue %s", k.Name, function, s.RoleARN, s.QueueURL)
					}
				}
			}
			if len(recorded) != len(c.Clusters) {
				t.Errorf("%s is configured for %v", service, slices.Sorted(maps.Keys(recorded)))
			}
		}
	})
}

// checkStartable returns the settings that the function reads at its start.
func checkStartable(t *testing.T, function resource, service string) []settings.Settings {
	t.Helper()
	variables, _ := function.at("Environment", "Variables").(map[string]any)
	required := []string{settings.ClusterName, settings.Region, settings.Bus, settings.DeadLetterURL}
	if service != "interruption" {
		required = append(required, settings.Bucket)
	}
	read, err := settings.ReadClusters(func(name string) (string, bool) {
		if name == settings.Region {
			return "eu-west-1", true
		}
		value, ok := variables[name].(string)
		return value, ok
	}, required...)
	if err != nil {
		t.Errorf("%s does not start: %v", service, err)
	}
	return read
}
