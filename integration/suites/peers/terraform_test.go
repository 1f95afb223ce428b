package peers

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
)

// terraformModule is the module, which the CDK app generates.
const terraformModule = "../../../deploy/terraform"

// oidcProvider avoids EKS Pod Identity, which moto does not have.
const oidcProvider = "arn:aws:iam::" + deployedAccount + ":oidc-provider/oidc.eks.example.com/id/01"

// terraformRoot uses the module with an emulator. %[1]s is the emulator's URL, %[2]s the
// cluster, %[3]s the region, %[4]s the OIDC provider.
const terraformRoot = `
provider "aws" {
  region                      = "%[3]s"
  access_key                  = "x"
  secret_key                  = "x"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  s3_use_path_style           = true

  endpoints {
    cloudwatch = "%[1]s"
    eks        = "%[1]s"
    events     = "%[1]s"
    iam        = "%[1]s"
    lambda     = "%[1]s"
    logs       = "%[1]s"
    s3         = "%[1]s"
    scheduler  = "%[1]s"
    sqs        = "%[1]s"
    sts        = "%[1]s"
  }
}

module "joist" {
  source = "./module"

  cluster_name        = "%[2]s"
  functions_version   = "0.1.0"
  functions_directory = path.root
  node_access         = "existing"
  oidc_provider_arn   = "%[4]s"
  retain_data         = false
}
`

// motoLacks are the properties that may be missing after the module is applied, with the reason.
var motoLacks = map[string]string{
	"AWS::SQS::Queue RedriveAllowPolicy":   "removed before, because moto does not store it and the provider waits for it",
	"AWS::Lambda::Function LoggingConfig":  "moto does not store it",
	"AWS::Lambda::EventSourceMapping Tags": "not tried: the provider that was at hand has no such argument",
	"AWS::Events::EventBus Description":    "not tried: the provider that was at hand has no such argument",
}

// TestTerraformModule applies the Terraform module to moto, reads every resource back, compares
// it with the template of the CDK app, and destroys it. It needs OpenTofu or Terraform, named
// by JOIST_TOFU, and the AWS provider: from the registry, or from TF_CLI_CONFIG_FILE.
func TestTerraformModule(t *testing.T) {
	at := peers(t)
	program := os.Getenv("JOIST_TOFU")
	if program == "" {
		t.Skip("JOIST_TOFU is not set to the program tofu or terraform, 1.9 or newer")
	}
	t.Parallel()
	dir, url := t.TempDir(), startMotoWithPolicies(t, at)
	writeRoot(t, dir, url)
	run := func(arguments ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, arguments...)
		cmd.Dir, cmd.Env = dir, append(withoutAWS(os.Environ()), "AWS_EC2_METADATA_DISABLED=true")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("init", "-no-color", "-input=false"); err != nil {
		t.Skipf("the AWS provider cannot be installed; set TF_CLI_CONFIG_FILE to a mirror: %v\n%s", err, out)
	}
	if out, err := run("apply", "-no-color", "-input=false", "-auto-approve"); err != nil {
		t.Fatal(err, out)
	}
	assembly := synthesize(t, map[string]string{"oidcProvider": oidcProvider, "nodeAccess": "existing"})
	text, err := os.ReadFile(filepath.Join(assembly, templateName))
	if err != nil {
		t.Fatal(err)
	}
	server := config(url)
	server.Region, server.Credentials = deployedRegion, credentials.NewStaticCredentialsProvider(deployedAccount, "secret", "")
	compareApplied(t, readStack(t, server, parsePlaced(t, text)))
	if out, err := run("destroy", "-no-color", "-input=false", "-auto-approve"); err != nil {
		t.Fatal(err, out)
	}
	for kind, all := range readStack(t, server, parsePlaced(t, text)) {
		if slices.ContainsFunc(all, func(p pair) bool { return p.err == nil }) {
			t.Errorf("%s remains after tofu destroy", kind)
		}
	}
}

// compareApplied compares all resources with the template.
func compareApplied(t *testing.T, stack map[string][]pair) {
	t.Helper()
	seen, compared := map[string]bool{}, 0
	for kind, all := range stack {
		for _, each := range all {
			if each.err != nil {
				t.Errorf("%s (%s) was not created: %v", each.id, kind, each.err)
				continue
			}
			for name, want := range each.want {
				if unread[kind+" "+name] != "" {
					continue
				}
				compared++
				if found := differ(name, normalize(listStatements(want)), normalize(listStatements(each.got[name]))); len(found) > 0 {
					if seen[kind+" "+name] = true; motoLacks[kind+" "+name] == "" {
						t.Errorf("%s (%s): %s", each.id, kind, strings.Join(found[:min(3, len(found))], "; "))
					}
				}
			}
		}
	}
	for lack := range motoLacks {
		if !seen[lack] {
			t.Logf("moto has %s: remove it from motoLacks", lack)
		}
	}
	t.Logf("compared %d properties of %d types", compared, len(stack))
}

// listStatements replaces lists of one by their item, because IAM accepts both and the module
// writes lists.
func listStatements(value any) any {
	switch v := value.(type) {
	case string:
		if inner := reparse(normalize(v)); !isText(inner) {
			return listStatements(inner)
		}
	case []any:
		if len(v) == 1 {
			return listStatements(v[0])
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = listStatements(item)
		}
		return out
	case object:
		out := object{}
		for name, member := range v {
			out[name] = listStatements(member)
		}
		return out
	}
	return value
}

func isText(value any) bool { _, ok := value.(string); return ok }

// startMotoWithPolicies starts moto with AWS's managed policies, which the nodes' role has.
func startMotoWithPolicies(t *testing.T, at installed) string {
	t.Helper()
	port := freePort(t)
	url := "http://127.0.0.1:" + port
	serve(t, url+"/moto-api/", "env", "MOTO_IAM_LOAD_MANAGED_POLICIES=true", at.python, "-m", "moto.server", "-H", "127.0.0.1", "-p", port)
	return url
}

// allowPolicy matches the DLQs' argument for which the provider waits, and which moto does not store.
var allowPolicy = regexp.MustCompile(`(?m)^  redrive_allow_policy +=( jsonencode\(\{ .*\}\)| jsonencode\(\{\n(    .*\n)*  \}\))\n`)

// writeRoot writes a root module, a copy of the module, and placeholders for the functions.
func writeRoot(t *testing.T, dir, url string) {
	t.Helper()
	write := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "module"), os.DirFS(terraformModule)); err != nil {
		t.Fatal(err)
	}
	queues, err := os.ReadFile(filepath.Join(terraformModule, "queues.tf"))
	if err != nil {
		t.Fatal(err)
	}
	if found := len(allowPolicy.FindAll(queues, -1)); found != 7 {
		t.Fatalf("%d DLQs have a redrive_allow_policy, want 7", found)
	}
	write("module/queues.tf", allowPolicy.ReplaceAll(queues, nil))
	write("main.tf", fmt.Appendf(nil, terraformRoot, url, deployedCluster, deployedRegion, oidcProvider))
	for _, service := range []string{"catalog", "disruption", "interruption", "launcher", "planner"} {
		var archive bytes.Buffer
		w := zip.NewWriter(&archive)
		entry, err := w.Create("bootstrap")
		if err == nil {
			_, err = entry.Write([]byte(service))
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		write("joist-"+service+"_0.1.0_lambda_arm64.zip", archive.Bytes())
	}
}
