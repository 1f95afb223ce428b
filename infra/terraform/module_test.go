package terraform

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/jsii-runtime-go"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/infra/template"
)

func TestMain(m *testing.M) {
	// The installed Node may be older than jsii's supported versions, which does not matter here.
	if err := os.Setenv("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "1"); err != nil {
		panic(err)
	}
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

const folder = "../../deploy/terraform"

var place = template.Place{Account: "111122223333", Region: "eu-west-1", Partition: "aws", Name: "Joist"}

// cases are configurations of the CDK app with the variables of the module that mean the same.
var cases = map[string]struct {
	context, variables map[string]any
	region             string
}{
	"fresh": {context: map[string]any{"clusterName": "prod"}, variables: map[string]any{"cluster_name": "prod"}},
	"china": {context: map[string]any{"clusterName": "prod", "region": "cn-north-1"}, variables: map[string]any{"cluster_name": "prod"}, region: "cn-north-1"},
	"terraform": {
		context: map[string]any{"clusterName": "prod", "adopt": "terraform", "interruptionQueue": "Karpenter-prod", "nodeRole": "eks/nodes/Karpenter-prod-2024"},
		variables: map[string]any{"cluster_name": "prod", "interruption_queue": map[string]any{"name": "Karpenter-prod", "has_policy": false, "rules": []string{}},
			"node_role_name": "Karpenter-prod-2024", "node_role_path": "/eks/nodes/", "node_access": "existing"},
	},
	"cloudformation": {
		context: map[string]any{"clusterName": "prod", "adopt": "cloudformation", "windowsNodeRole": "eks/windows"},
		variables: map[string]any{"cluster_name": "prod", "windows_node_role_name": "eks/windows", "node_role_name": "KarpenterNodeRole-prod", "node_access": "existing", "interruption_queue": map[string]any{
			"name": "prod", "has_policy": true, "rules": []string{"ScheduledChangeRule", "SpotInterruptionRule", "RebalanceRule", "InstanceStateChangeRule"}}},
	},
	"prefix": {
		context:   map[string]any{"clusterName": "prod_1", "namePrefix": "p1", "bucket": "documents", "namespace": "karpenter", "snapshots": "snap-0123,*", "nodeTags": "Env,Team"},
		variables: map[string]any{"cluster_name": "prod_1", "name_prefix": "p1", "bucket_name": "documents", "namespace": "karpenter", "snapshots": []string{"snap-0123", "*"}, "node_tags": []string{"Env", "Team"}},
	},
	// The role's name would be too long with the cluster's name.
	"long role": {
		context:   map[string]any{"clusterName": strings.Repeat("c", 47), "namePrefix": "p1", "nodeProfiles": "instanceProfile"},
		variables: map[string]any{"cluster_name": strings.Repeat("c", 47), "name_prefix": "p1", "node_profiles": "instanceProfile"},
	},
	// So would the instance profile's name. A queue's name may have 80 characters.
	"long profile": {
		context: map[string]any{"clusterName": strings.Repeat("c", 100), "namePrefix": "p1", "nodeProfiles": "instanceProfile", "interruptionQueue": "notices"},
		variables: map[string]any{"cluster_name": strings.Repeat("c", 100), "name_prefix": "p1", "node_profiles": "instanceProfile",
			"interruption_queue": map[string]any{"name": "notices", "has_policy": false, "rules": []string{}}},
	},
	"everything": {
		context: map[string]any{
			"clusterName": "prod", "clusterUID": "5a7d0c1e", "oidcProvider": "arn:aws:iam::111122223333:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/01", "nodeProfiles": "instanceProfile",
			"zonalShift": true, "isolatedVPC": true, "rebootForRepair": true, "cloudWatchMetrics": "tcp://agent:25888", "alarmTopic": "arn:aws:sns:eu-west-1:111122223333:oncall",
			"subnets": "subnet-0a1b2c3d,subnet-0b1c2d3e", "securityGroups": "sg-0c1d2e3f", "nodeTags": "Env", "parameters": "/a,/b", "snapshots": "snap-01", "windowsNodeRole": "windows",
			"replayers": "arn:aws:iam::111122223333:role/a,arn:aws:iam::111122223333:role/b", "environment": "LOG_LEVEL=debug", "functionMemory": "planner=3538",
			"reservedConcurrency": "interruption=10",
		},
		variables: map[string]any{
			"cluster_name": "prod", "cluster_uid": "5a7d0c1e", "oidc_provider_arn": "arn:aws:iam::111122223333:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/01", "node_profiles": "instanceProfile",
			"zonal_shift": true, "isolated_vpc": true, "reboot_for_repair": true, "cloudwatch_metrics": "tcp://agent:25888", "alarm_topic_arn": "arn:aws:sns:eu-west-1:111122223333:oncall",
			"subnet_ids": []string{"subnet-0a1b2c3d", "subnet-0b1c2d3e"}, "security_group_ids": []string{"sg-0c1d2e3f"}, "node_tags": []string{"Env"}, "parameters": []string{"/a", "/b"},
			"snapshots": []string{"snap-01"}, "windows_node_role_name": "windows", "replayers": []string{"arn:aws:iam::111122223333:role/a", "arn:aws:iam::111122223333:role/b"},
			"environment": map[string]any{"LOG_LEVEL": "debug"}, "function_memory": map[string]any{"planner": 3538}, "reserved_concurrency": map[string]any{"interruption": 10},
		},
	},
}

// always are the variables and the context that every case has.
var (
	alwaysContext   = map[string]any{"images": "ghcr.io/joist-autoscaler", "chartRepository": "oci://ghcr.io/joist-autoscaler/charts"}
	alwaysVariables = map[string]any{"functions_version": "0.1.0", "functions_directory": "dist"}
)

// readModule returns the files of the module in the repository.
func readModule(t *testing.T) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.tf"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = text
	}
	return files
}

func TestModuleIsGenerated(t *testing.T) {
	files, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	have := readModule(t)
	for name, text := range files {
		if !bytes.Equal(have[name], text) {
			t.Errorf("%s is out of date; run make generate, and review the difference", name)
		}
	}
	for name, text := range have {
		if bytes.HasPrefix(text, []byte(header)) && files[name] == nil {
			t.Errorf("%s is not generated any more; delete it", name)
		}
	}
}

// With the same settings, the module has the same resources and outputs as the CDK app.
func TestModuleEqualsTemplate(t *testing.T) {
	files := readModule(t)
	for _, name := range sortedKeys(cases) {
		t.Run(name, func(t *testing.T) {
			test := cases[name]
			context := maps.Clone(alwaysContext)
			maps.Copy(context, test.context)
			c, err := config.Read(func(key string) any { return context[key] })
			if err != nil {
				t.Fatal(err)
			}
			at := place
			if test.region != "" {
				at.Region, at.Partition = test.region, c.Partition
			}
			alone, err := newVariant("", c, true)
			if err != nil {
				t.Fatal(err)
			}
			static, err := writeModule([]variant{alone})
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"locals.tf", "variables.tf"} {
				static[file] = files[file]
			}
			module, want := parseModule(t, files), parseModule(t, static)
			for _, m := range []*struct{ region, partition *string }{{&module.region, &module.partition}, {&want.region, &want.partition}} {
				*m.region, *m.partition = at.Region, at.Partition
			}
			variables := maps.Clone(alwaysVariables)
			maps.Copy(variables, test.variables)
			resources, outputs := module.evaluate(t, variables)
			for _, merged := range []string{"environment", "function_memory", "reserved_concurrency"} {
				delete(variables, merged) // Its values are in the template.
			}
			wantResources, wantOutputs := want.evaluate(t, variables)
			if diff := cmp.Diff(wantResources, resources); diff != "" {
				t.Errorf("resources (-template +module):\n%s", diff)
			}
			if diff := cmp.Diff(wantOutputs, outputs); diff != "" {
				t.Errorf("outputs (-template +module):\n%s", diff)
			}
			checkLeaves(t, c, at, resources)
			checkPolicySizes(t, resources)
		})
	}
}

// checkLeaves checks that every value of the resolved template is in the module's resources.
// It does not use the translation of values.
func checkLeaves(t *testing.T, c config.Config, at template.Place, resources map[string]any) {
	t.Helper()
	raw, err := synthesize(c)
	if err != nil {
		t.Fatal(err)
	}
	at.Name = c.StackName
	parsed, err := template.Parse(raw.raw)
	if err != nil {
		t.Fatal(err)
	}
	names, err := nameResources(raw, c.Clusters[0].Plan.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for id, address := range names {
		r, err := parsed.DeployTo(at).Resource(id)
		if err != nil {
			t.Fatal(err)
		}
		delete(r.Properties, "Code")
		delete(r.Properties, "Tags")
		if r.Type == "AWS::SQS::QueuePolicy" {
			delete(r.Properties, "Queues") // Its URL is not known here.
		}
		have := map[string]bool{}
		_, name, _ := strings.Cut(address, ".")
		for other, body := range resources {
			if _, n, _ := strings.Cut(other, "."); n == name || strings.HasPrefix(n, name+"_") {
				listLeaves(body, have)
			}
		}
		want := map[string]bool{}
		for _, property := range r.Properties {
			values := map[string]bool{}
			listValuesOnly(decodeDocuments(property), values)
			maps.Copy(want, values)
		}
		for value := range want {
			checked++
			if !have[value] && !isReference(value) {
				t.Errorf("%s: the template's %s has the value %q, which the module lacks", address, id, value)
			}
		}
	}
	if checked < 1000 {
		t.Errorf("only %d values were compared", checked)
	}
}

// isReference reports whether a value is an ARN that the module gets from another resource, for
// which the evaluation has a stand-in.
func isReference(value string) bool {
	return strings.Contains(value, ":role/") || strings.Contains(value, ":event-bus/")
}

// listValuesOnly adds the texts of all leaves, without the keys of objects.
func listValuesOnly(value any, into map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			listValuesOnly(member, into)
		}
	case []any:
		for _, item := range v {
			listValuesOnly(item, into)
		}
	default:
		into[leafText(v)] = true
	}
}

// policyLimits are the sizes of policies without white space
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html). Those of inline
// policies are the sum of a role's.
var policyLimits = map[string]int{"aws_iam_role_policy": 10240, "aws_iam_policy": 6144, "aws_iam_role": 2048, "aws_cloudwatch_log_resource_policy": 5120, "aws_s3_bucket_policy": 20480, "aws_cloudwatch_event_bus_policy": 10240}

func checkPolicySizes(t *testing.T, resources map[string]any) {
	t.Helper()
	sizes := map[string]int{}
	for address, body := range resources {
		kind, _, _ := strings.Cut(address, ".")
		owner := address
		if kind == "aws_iam_role_policy" {
			owner = kind + " of " + fmt.Sprint(body.(map[string]any)["role"])
		}
		for _, key := range []string{"policy", "assume_role_policy", "policy_document"} {
			if document, ok := body.(map[string]any)[key]; ok {
				sizes[owner] += len(strings.Join(strings.Fields(itemKey(map[string]any{"document": document})), ""))
			}
		}
	}
	for owner, size := range sizes {
		kind, _, _ := strings.Cut(strings.Fields(owner)[0], ".")
		if limit := policyLimits[kind]; limit != 0 && size > limit {
			t.Errorf("the policy of %s has %d characters; AWS allows %d", owner, size, limit)
		}
	}
}

// All files are formatted, and every reference is to something that is declared and used.
func TestModuleIsConsistent(t *testing.T) {
	files := readModule(t)
	examples, err := filepath.Glob(filepath.Join(folder, "examples", "*", "*.tf"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, name := range examples {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(hclwrite.Format(text), text) {
			t.Errorf("%s is not formatted", name)
		}
	}
	m := parseModule(t, files)
	used := map[string]bool{}
	for name, text := range files {
		if !bytes.Equal(hclwrite.Format(text), text) {
			t.Errorf("%s is not formatted", name)
		}
		parsed, _ := hclsyntax.ParseConfig(text, name, hcl.InitialPos)
		for _, d := range listReferences(parsed.Body.(*hclsyntax.Body)) {
			if len(d) < 2 {
				continue
			}
			attribute, ok := d[1].(hcl.TraverseAttr)
			if !ok {
				continue
			}
			root := d.RootName()
			used[root+"."+attribute.Name] = true
			var known bool
			switch {
			case root == "var":
				_, known = m.variables[attribute.Name]
			case root == "local":
				_, known = m.locals[attribute.Name]
			case strings.HasPrefix(root, "aws_"):
				_, known = m.resources[root+"."+attribute.Name]
			default:
				known = true
			}
			if !known {
				t.Errorf("%s refers to the unknown %s.%s", name, root, attribute.Name)
			}
		}
	}
	for name := range m.variables {
		if !used["var."+name] {
			t.Errorf("the variable %s is not used", name)
		}
	}
	for name := range m.locals {
		if !used["local."+name] {
			t.Errorf("the local %s is not used", name)
		}
	}
}

// listReferences returns all references of a file.
func listReferences(body *hclsyntax.Body) []hcl.Traversal {
	var all []hcl.Traversal
	_ = hclsyntax.VisitAll(body, func(node hclsyntax.Node) hcl.Diagnostics {
		if a, ok := node.(*hclsyntax.Attribute); ok {
			all = append(all, a.Expr.Variables()...)
		}
		return nil
	})
	return all
}
