package stack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/infra/stack"
	"github.com/joist-autoscaler/joist/shared/fault"
)

func app(t *testing.T, context map[string]any) awscdk.App {
	t.Helper()
	return awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(t.TempDir()), AnalyticsReporting: jsii.Bool(false), Context: &context})
}

func checkRejected(t *testing.T, err error, says string) {
	t.Helper()
	if !fault.Is(err, fault.Invalid) || fault.FindHint(err) == "" || !strings.Contains(err.Error()+fault.FindHint(err), says) {
		t.Errorf("%v (%s) does not contain %q", err, fault.FindHint(err), says)
	}
}

func TestSecondStackOfCluster(t *testing.T) {
	to := app(t, nil)
	one, two := configOf(t, contexts["fresh"]), configOf(t, contexts["fresh"])
	two.StackName = "Another"
	if _, err := stack.New(to, one); err != nil {
		t.Fatal(err)
	}
	_, err := stack.New(to, two)
	checkRejected(t, err, "already has the stack Joist-prod")
}

func TestMissingFunctions(t *testing.T) {
	c := configOf(t, contexts["oidc"])
	if err := os.Remove(filepath.Join(c.Binaries, "spotrole", "bootstrap")); err != nil {
		t.Fatal(err)
	}
	_, err := stack.New(app(t, nil), c)
	checkRejected(t, err, "make lambdas")
	c.Binaries = t.TempDir()
	_, err = stack.New(app(t, nil), c)
	checkRejected(t, err, "planner/bootstrap is not an executable file")
}

// Lambda permits 4 KB of environment variables. Clusters that need more in one shared
// function are rejected before the synthesis; separate functions would work.
func TestTooManyClustersForOneFunction(t *testing.T) {
	names := make([]any, 12)
	for i := range names {
		names[i] = map[string]any{"clusterName": fmt.Sprintf("production-%d", i), "clusterUID": "5a7d0c1e-0000-4000-8000-000000000001"}
	}
	many := map[string]any{"clusters": names, "sharedFunctions": true, "stackName": "joist"}
	_, err := stack.New(app(t, nil), configOf(t, many))
	checkRejected(t, err, "leave sharedFunctions out")
	many["clusters"] = names[:5]
	if _, err := stack.New(app(t, nil), configOf(t, many)); err != nil {
		t.Errorf("five clusters are rejected: %v", err)
	}
	// The variables of six clusters would fit, but the template would be too large.
	many["clusters"] = names[:6]
	made, err := stack.New(app(t, nil), configOf(t, many))
	checkRejected(t, err, "into another stack")
	if made != nil {
		t.Error("New returned a stack and an error")
	}
	if err == nil || !strings.Contains(err.Error(), "a template may have 500") {
		t.Error(err)
	}
}

// The launcher's policy repeats the cluster's name and the node tags. A policy that
// exceeds IAM's limit is rejected before the synthesis, with the fix.
func TestPoliciesTooLargeForIAM(t *testing.T) {
	long := map[string]any{
		"clusterName": strings.Repeat("c", 80), "namePrefix": strings.Repeat("p", 42), "bucket": "joist-1", "nodeTags": "Env,ManagedBy,karpenter.sh/discovery",
		"subnets": "subnet-0a1b2c3d", "securityGroups": "sg-0c1d2e3f",
	}
	_, err := stack.New(app(t, nil), configOf(t, long))
	checkRejected(t, err, "nodeProfiles=instanceProfile")
	if err == nil || !strings.Contains(err.Error(), "launcher") {
		t.Error(err)
	}
	long["nodeProfiles"] = "instanceProfile"
	if _, err := stack.New(app(t, nil), configOf(t, long)); err != nil {
		t.Errorf("without managed profiles it is rejected: %v", err)
	}
}

// Shared functions have their services' timeouts, but no longer than the visibility
// timeout of any cluster's queue.
func TestSharedFunctionsUseShortestQueueTimeout(t *testing.T) {
	to := app(t, nil)
	made, err := stack.New(to, configOf(t, map[string]any{"sharedFunctions": true, "stackName": "joist", "clusters": []any{
		"prod", map[string]any{"clusterName": "old", "adopt": "cloudformation", "queueVisibility": "30s"}}}))
	if err != nil {
		t.Fatal(err)
	}
	template := assertions.Template_FromStack(made, nil)
	for service, seconds := range map[string]int{"interruption": 10, "planner": 150} {
		template.HasResourceProperties(jsii.String("AWS::Lambda::Function"), map[string]any{"FunctionName": "joist-joist-" + service, "Timeout": seconds})
	}
}

func TestReplayersMustBeNamed(t *testing.T) {
	c := configOf(t, contexts["fresh"])
	c.Clusters[0].Replayers = []string{"*"}
	_, err := stack.New(app(t, nil), c)
	checkRejected(t, err, "arn:aws:iam::")
}

// Unknown context keys are rejected, except the CDK's own.
func TestUnknownContextKeysAreRejected(t *testing.T) {
	_, err := stack.ReadConfig(app(t, map[string]any{"clustername": "prod"}))
	checkRejected(t, err, "unknown context key clustername")
	_, err = stack.ReadConfig(app(t, map[string]any{}))
	checkRejected(t, err, "clusterName=prod")
	c, err := stack.ReadConfig(app(t, map[string]any{"clusterName": "prod", "aws:cdk:enable-path-metadata": true, "@aws-cdk/core:newStyle": true}))
	if err != nil || c.Clusters[0].Name != "prod" {
		t.Errorf("%+v, %v", c, err)
	}
}
