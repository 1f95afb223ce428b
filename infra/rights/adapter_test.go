package rights_test

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/infra/rights"
)

// adapters are the packages that call AWS. Each names its actions as policies do, in its
// error hints.
var adapters = []string{
	"aws/stsrole", "blob/s3blob", "cloud/ec2cloud", "cloud/ekscluster", "cloud/iamprofile", "cloud/pricing", "cloud/ssmparameters", "cloud/zonalshift",
	"queue/eventbus", "queue/sqsqueue",
}

// uncheckedActions are permissions that no adapter names, with the reason why they are
// needed.
var uncheckedActions = map[string]string{
	"iam:PassRole":         "EC2 checks it for launches with an instance profile, and IAM when a role is added to one",
	"logs:CreateLogStream": "Lambda writes a function's log with the function's role",
	"logs:PutLogEvents":    "Lambda writes a function's log with the function's role",
}

// unrestrictedActions are calls that need no permission, or that no service makes.
var unrestrictedActions = map[string]string{
	"sts:GetCallerIdentity": "it is allowed without a policy",
	"sts:AssumeRole":        "a shared function assumes the roles of its clusters with permissions of its own (shared_test.go)",
	"kms:GenerateDataKey":   "hint for queues with a customer-managed key",
	"kms:Decrypt":           "hint for queues with a customer-managed key",
	"tag:Name":              "a filter of EC2, not an action",
	"eks:ListClusters":      "completes --cluster; without the permission the shell completes nothing",
}

// calledByAdapters returns the actions that the adapters in shared name.
func calledByAdapters(t *testing.T) map[string]bool {
	t.Helper()
	called := map[string]bool{}
	for _, adapter := range adapters {
		files, err := filepath.Glob(filepath.Join("..", "..", "shared", adapter, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files of %s: %v", adapter, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range named(regexp.MustCompile(`\b([a-z0-9-]+:[A-Z][A-Za-z]+)\b`), string(text)) {
				called[name] = true
			}
		}
	}
	return called
}

// The adapters' calls and the roles' permissions have the same actions, except the two
// lists above.
func TestRightsMatchAdapterCalls(t *testing.T) {
	called := calledByAdapters(t)
	may := map[string]bool{}
	for name, d := range deployed(t, func(s *rights.Scope) { currentSystem(s); s.RebootForRepair = true }) {
		// Policies of people and of resources are not compared.
		if strings.HasPrefix(name, cluster+"/") && !strings.Contains(name, "operator") && !strings.Contains(name, "replayer") {
			for _, action := range d.Actions() {
				may[action] = true
			}
		}
	}
	for action := range called {
		if !may[action] && unrestrictedActions[action] == "" {
			t.Errorf("%s is called, but no role allows it", action)
		}
	}
	for action := range may {
		if !called[action] && uncheckedActions[action] == "" {
			t.Errorf("%s is allowed, but no adapter calls it", action)
		}
	}
}

// sdks are the prefixes of policy actions that differ from the SDK's package name.
var sdks = map[string]string{"cloudwatchlogs": "logs", "eventbridge": "events"}

// The policies for people have exactly the actions that the joist commands call.
func TestOperatorRightsMatchCLICalls(t *testing.T) {
	called := map[string]bool{}
	for action := range calledByAdapters(t) {
		called[action] = true
	}
	own := 0
	input := regexp.MustCompile(`\b([a-z0-9]+)\.([A-Z][A-Za-z]+)Input\{`)
	err := filepath.WalkDir(filepath.Join("..", "..", "services", "cli"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range input.FindAllStringSubmatch(string(text), -1) {
			action := cmp.Or(sdks[found[1]], found[1]) + ":" + found[2]
			called[action] = true
			own++
			if !slices.Contains(operatorAndReplayer(t), action) && unrestrictedActions[action] == "" {
				t.Errorf("%s calls %s, but no policy for people allows it", path, action)
			}
		}
		return err
	})
	if err != nil || own == 0 {
		t.Errorf("%d calls, %v", own, err)
	}
	for _, action := range operatorAndReplayer(t) {
		if !called[action] && uncheckedActions[action] == "" {
			t.Errorf("a policy for people allows %s, but no command calls it", action)
		}
	}
}

// operatorAndReplayer returns the actions of the operator and replayer policies together.
func operatorAndReplayer(t *testing.T) []string {
	t.Helper()
	s := scope(t, cluster)
	return slices.Concat(must(t)(s.OperatorPolicy()).Actions(), must(t)(s.ReplayerPolicy()).Actions())
}

// The nodes have exactly AWS's four managed policies.
func TestNodePolicies(t *testing.T) {
	got := rights.Scope{Partition: "aws-us-gov"}.NodePolicies()
	want := []string{"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore"}
	for i, name := range want {
		want[i] = "arn:aws-us-gov:iam::aws:policy/" + name
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
