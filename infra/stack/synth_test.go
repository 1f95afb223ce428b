package stack_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"

	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/infra/stack"
	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/shared/topology"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	flag.Parse()
	// The installed Node may be older than jsii's supported versions, which does not
	// matter here.
	if err := os.Setenv("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "1"); err != nil {
		panic(err)
	}
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

// contexts are typical configurations; each has a golden template.
var contexts = map[string]map[string]any{
	"fresh": {"clusterName": "prod"},
	// seoul is the cluster of the end-to-end tests, which build their fake AWS from this
	// template.
	"seoul": {"clusterName": "seoul"},
	"oidc": {
		"clusterName": "prod", "region": "eu-west-1", "environment": "LOG_LEVEL=debug,OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318", "account": "111122223333", "nodeAccess": "awsAuth", "nodeProfiles": "instanceProfile",
		"oidcProvider": "arn:aws:iam::111122223333:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF", "namespace": "karpenter",
		"cloudWatchMetrics": "tcp://cloudwatch-agent.amazon-cloudwatch:25888",
		"alarmTopic":        "arn:aws:sns:eu-west-1:111122223333:oncall", "spotServiceLinkedRole": "true",
		"installCharts": "true", "images": "111122223333.dkr.ecr.eu-west-1.amazonaws.com/joist", "charts": "../../deploy/charts",
		"kubectlRole": "arn:aws:iam::111122223333:role/deployer", "kubectlLayer": "arn:aws:lambda:eu-west-1:111122223333:layer:kubectl:1",
		"reservedConcurrency": "interruption=10", "subnets": "subnet-0a1b2c3d,subnet-0b1c2d3e", "securityGroups": "sg-0c1d2e3f",
	},
	"cloudformation": {"clusterName": "prod", "adopt": "cloudformation", "windowsNodeRole": "eks/windows"},
	"terraform": {
		"clusterName": "prod", "adopt": "terraform", "interruptionQueue": "Karpenter-prod-SpotInterruptionQueue", "nodeRole": "eks/KarpenterNodeRole-prod",
		"nodeProfiles": "instanceProfile", "nodeAccess": "awsAuth", "queueVisibility": "9m",
	},
	"clusters": {"clusters": []any{
		map[string]any{"clusterName": "prod", "nodeTags": "Env,ManagedBy,karpenter.sh/discovery"},
		map[string]any{"clusterName": "staging", "adopt": "cloudformation", "nodeTags": "Env"},
	}, "stackName": "joist-all"},
	// shared is the stack from which the fake AWS of two clusters is built.
	"shared": {"clusters": []any{
		map[string]any{"clusterName": "prod", "clusterUID": "5a7d0c1e-0000-4000-8000-000000000001", "nodeTags": "Env,ManagedBy,karpenter.sh/discovery"},
		map[string]any{"clusterName": "staging", "nodeTags": "Env", "zonalShift": true, "environment": "JOIST_MAX_INSTANCES_PER_INTENT=7"},
	}, "stackName": "joist-all", "sharedFunctions": "true"},
}

// synthesis is a synthesized template, resolved for one place.
type synthesis struct {
	*template.Stack
	// raw is the template as in its golden file.
	raw []byte
	// findings are cdk-nag's report.
	findings []byte
}

// place is the place of the oidc context, the only one that sets it.
var place = template.Place{Account: "111122223333", Region: "eu-west-1", Partition: "aws", Name: "Joist"}

// binaries returns a folder with a placeholder binary for each function.
func binaries(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, service := range append(slices.Clone(topology.ExternalServices), "spotrole") {
		if err := os.MkdirAll(filepath.Join(dir, service), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, service, "bootstrap"), []byte(service), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func configOf(t *testing.T, context map[string]any) config.Config {
	t.Helper()
	c, err := config.Read(func(key string) any { return context[key] })
	if err != nil {
		t.Fatal(err)
	}
	c.Binaries = binaries(t)
	return c
}

var (
	synthesized = map[string]synthesis{}
	one         sync.Mutex
)

// synth returns the template of a context; it is synthesized once for all tests.
func synth(t *testing.T, name string) synthesis {
	t.Helper()
	one.Lock()
	defer one.Unlock()
	if done, ok := synthesized[name]; ok {
		return done
	}
	c := configOf(t, contexts[name])
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(t.TempDir()), AnalyticsReporting: jsii.Bool(false)})
	if _, err := stack.New(app, c); err != nil {
		t.Fatal(err)
	}
	awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{}), nil)
	dir := *app.Synth(nil).Directory()
	done := synthesis{raw: normalize(t, filepath.Join(dir, c.StackName+".template.json"))}
	written, err := template.Parse(done.raw)
	if err != nil {
		t.Fatal(err)
	}
	done.Stack = written.DeployTo(place)
	reports, err := filepath.Glob(filepath.Join(dir, "AwsSolutions-*.csv"))
	if err != nil || len(reports) == 0 {
		t.Fatalf("%d reports of cdk-nag: %v", len(reports), err)
	}
	for _, report := range reports {
		text, err := os.ReadFile(report)
		if err != nil {
			t.Fatal(err)
		}
		done.findings = append(done.findings, text...)
	}
	synthesized[name] = done
	return done
}

var hash = regexp.MustCompile(`[0-9a-f]{64}\.(zip|json)`)

// normalize returns a template without asset hashes and CDK metadata, with one line per
// property of a resource.
func normalize(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(hash.ReplaceAll(raw, []byte("HASH.$1")), &whole); err != nil {
		t.Fatal(err)
	}
	for _, r := range whole["Resources"].(map[string]any) {
		delete(r.(map[string]any), "Metadata")
	}
	return append(lines(t, whole, "", 4), '\n')
}

// lines formats JSON with one line per member, down to a depth.
func lines(t *testing.T, value any, indent string, depth int) []byte {
	t.Helper()
	object, ok := value.(map[string]any)
	if !ok || depth == 0 || len(object) == 0 {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(value); err != nil {
			t.Fatal(err)
		}
		return bytes.TrimSpace(text.Bytes())
	}
	var members [][]byte
	for _, key := range slices.Sorted(maps.Keys(object)) {
		members = append(members, slices.Concat([]byte(indent+"  "), lines(t, key, "", 0), []byte(": "), lines(t, object[key], indent+"  ", depth-1)))
	}
	return slices.Concat([]byte("{\n"), bytes.Join(members, []byte(",\n")), []byte("\n"+indent+"}"))
}

func TestTemplatesMatchGoldens(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(contexts)) {
		t.Run(name, func(t *testing.T) {
			got, file := synth(t, name).raw, filepath.Join("testdata", name+".template.json")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, got) {
				t.Errorf("the template differs from %s; run go test ./stack -update, and review the difference", file)
			}
		})
	}
}
