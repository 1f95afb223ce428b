package cli

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/stack"
)

// deployed returns the template that the CDK app creates for the cluster: the golden file
// "fresh" or, with shared functions, "shared".
func deployed(t *testing.T, golden string) stack.Stack {
	t.Helper()
	text, err := os.ReadFile("../../../infra/stack/testdata/" + golden + ".template.json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.Read(text, template.Place{
		Account: "123456789012", Region: "eu-west-1", Partition: "aws", Name: "Joist-prod", QueueURL: func(name string) string { return "https://sqs/" + name },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestQueuesShowsEveryDeadLetterQueue checks that `joist queues` shows every DLQ of
// the template's queues, rules and schedules.
func TestQueuesShowsEveryDeadLetterQueue(t *testing.T) {
	t.Parallel()
	wanted := map[string]bool{}
	s := deployed(t, "fresh")
	for _, q := range s.Queues {
		if r := q.RedrivePolicy; r != nil {
			wanted[template.Name(r.DeadLetterTargetArn)] = true
		}
	}
	for _, r := range s.Rules {
		for _, target := range r.Targets {
			wanted[template.Name(target.DeadLetterConfig.Arn)] = true
		}
	}
	for _, schedule := range s.Schedules {
		wanted[template.Name(schedule.Target.DeadLetterConfig.Arn)] = true
	}
	stdout, stderr, _ := start(t).joist(t, "queues", "-o", "json")
	var list struct {
		Queues []struct{ DeadLetterQueue string }
	}
	if err := json.Unmarshal([]byte(stdout), &list); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	shown := map[string]bool{}
	for _, row := range list.Queues {
		shown[row.DeadLetterQueue] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(wanted)), slices.Sorted(maps.Keys(shown))); diff != "" {
		t.Errorf("the template's DLQs and the DLQs that are shown (-template +shown):\n%s", diff)
	}
}
