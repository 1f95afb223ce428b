package karpenterspecs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

const providerModule = "github.com/aws/karpenter-provider-aws"

// Texts of the suites whose controllers run a pass of lifecycle, which needs their API server.
const (
	taggingFolder       = "pkg/controllers/nodeclaim/tagging/"
	garbageFolder       = "pkg/controllers/nodeclaim/garbagecollection/"
	providerTests       = "	\"github.com/aws/karpenter-provider-aws/pkg/test\"\n"
	useEnvironmentAfter = "	awsEnv = test.NewEnvironment(ctx, env)\n"
	useEnvironment      = "	lifecyclepass.UseEnvironment(env.Config, env.Client, env.Clock)\n"
)

const templateSuite = "pkg/providers/launchtemplate/suite_test.go"

// providerEdits are the changes to Karpenter's AWS provider.
var providerEdits = []edit{
	{"pkg/providers/instance/instance.go", "func (p *DefaultProvider) Create(", "func (p *DefaultProvider) createUpstream(", 1},
	{"pkg/cloudprovider/drift.go", "func (c *CloudProvider) isNodeClassDrifted(", "func (c *CloudProvider) isNodeClassDriftedUpstream(", 1},
	{"pkg/cloudprovider/cloudprovider.go", "func (c *CloudProvider) RepairPolicies(", "func (c *CloudProvider) repairPoliciesUpstream(", 1},
	{taggingFolder + "controller.go", "func (c *Controller) Reconcile(", "func (c *Controller) reconcileUpstream(", 1},
	{garbageFolder + "controller.go", "func (c *Controller) Reconcile(", "func (c *Controller) reconcileUpstream(", 1},
	{taggingFolder + "suite_test.go", useEnvironmentAfter, useEnvironmentAfter + useEnvironment, 1},
	{garbageFolder + "suite_test.go", useEnvironmentAfter, useEnvironmentAfter + useEnvironment, 1},
	{taggingFolder + "suite_test.go", providerTests, providerTests + passImport + "\n", 1},
	{garbageFolder + "suite_test.go", providerTests, providerTests + passImport + "\n", 1},
	{"pkg/controllers/interruption/parser.go", "func (p EventParser) Parse(", "func (p EventParser) parseUpstream(", 1},
	// IDs of EC2 instances are hexadecimal, and Joist rejects others.
	{"pkg/fake/utils.go", `fmt.Sprintf("i-%s", randomdata.Alphanumeric(17))`, `fmt.Sprintf("i-%s", randomdata.Digits(17))`, 1},
	// The specs compare the meaning of the user data instead of its text.
	{templateSuite, "ExpectWithOffset(2, actualUserData).To(Equal(expectedUserData))", "ExpectWithOffset(2, launching.ParseUserData(string(userData))).To(Equal(launching.ParseUserData(expected)))", 1},
	{templateSuite, "		// Newlines are always added for missing TOML fields, so strip them out before comparisons.\n		actualUserData := strings.ReplaceAll(string(userData), \"\\n\", \"\")\n		expectedUserData := strings.ReplaceAll(expected, \"\\n\", \"\")\n", "", 1},
	{templateSuite, "	\"github.com/aws/karpenter-provider-aws/pkg/test\"\n", "	\"github.com/aws/karpenter-provider-aws/pkg/test\"\n	\"github.com/joist-autoscaler/joist/integration/suites/karpenterspecs/launching\"\n", 1},
}

// providerFiles are the files that are added to the provider, by the file of testdata.
var providerFiles = map[string]string{
	"cloudprovider.go.txt": "pkg/cloudprovider/cloudprovider_joist.go",
	"garbage.go.txt":       garbageFolder + "reconcile_joist.go",
	"tagging.go.txt":       taggingFolder + "reconcile_joist.go",
	"create.go.txt":        "pkg/providers/instance/create_joist.go",
	"parse.go.txt":         "pkg/controllers/interruption/parse_joist.go",
	"subnets.go.txt":       "pkg/providers/subnet/subnets_joist.go",
}

// copyProvider writes a changed copy of Karpenter's AWS provider into a folder.
func copyProvider(ctx context.Context, integration, into string) (karpenterCopy, error) {
	out := karpenterCopy{integration: integration, module: filepath.Join(into, "provider"), modFile: filepath.Join(into, "provider.mod")}
	from, err := out.runGo(ctx, "list", "-m", "-f", "{{.Dir}}", providerModule)
	if err != nil {
		return out, err
	}
	if err := os.RemoveAll(out.module); err != nil {
		return out, fmt.Errorf("removing the last copy of the AWS provider: %w", err)
	}
	if err := os.CopyFS(filepath.Join(out.module, "pkg"), os.DirFS(filepath.Join(from, "pkg"))); err != nil {
		return out, fmt.Errorf("copying the AWS provider: %w", err)
	}
	if err := copyFile(filepath.Join(from, "go.mod"), filepath.Join(out.module, "go.mod")); err != nil {
		return out, err
	}
	for _, e := range providerEdits {
		if err := applyEdit(out.module, e); err != nil {
			return out, err
		}
	}
	for name, path := range providerFiles {
		if err := copyFile(filepath.Join("testdata", name), filepath.Join(out.module, path)); err != nil {
			return out, err
		}
	}
	return out, out.writeProviderModFile()
}

// writeProviderModFile writes the go.mod and go.sum of integration with the AWS provider replaced by the copy.
func (c karpenterCopy) writeProviderModFile() error {
	content, err := os.ReadFile(filepath.Join(c.integration, "go.mod"))
	if err != nil {
		return fmt.Errorf("reading integration's go.mod: %w", err)
	}
	content = fmt.Appendf(content, "\nreplace %s => %s\n", providerModule, c.module)
	if err := os.WriteFile(c.modFile, content, 0o644); err != nil {
		return fmt.Errorf("writing go.mod: %w", err)
	}
	return copyFile(filepath.Join(c.integration, "go.sum"), filepath.Join(filepath.Dir(c.modFile), "provider.sum"))
}
