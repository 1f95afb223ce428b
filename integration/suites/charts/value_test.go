package charts

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/integration/environment/helm"

	"github.com/joist-autoscaler/joist/shared/host/settings"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// eras returns the values of Karpenter's charts that this chart has under another name.
func eras(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(helm.Joist + "/files/eras.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(maps.Collect(func(yield func(string, bool) bool) {
		for _, era := range all {
			for path := range era {
				yield(path, true)
			}
		}
	})))
}

func documented(t *testing.T, chart string) []helm.Value {
	t.Helper()
	found, err := helm.Values(chart)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The keys that NOTES.txt accepts are the values in values.yaml and the old names.
func TestKeys(t *testing.T) {
	paths := eras(t)
	for _, v := range documented(t, helm.Joist) {
		paths = append(paths, v.Path)
	}
	keys, err := helm.Keys(paths)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, helm.Joist+"/files/keys.yaml", keys)
}

// The chart knows every value of Karpenter's own chart.
func TestKarpenterValuesAreKnown(t *testing.T) {
	notes := given{namespace: "joist", files: []string{karpenters(t)}, set: needed}.render(t, "--show-only", "templates/notes.yaml")
	if strings.Contains(notes, "WARNING") {
		t.Error(notes)
	}
}

// The schemas have every value, and no others.
func TestSchema(t *testing.T) {
	for _, chart := range []string{helm.Joist, helm.Definitions} {
		text, err := os.ReadFile(chart + "/values.schema.json")
		if err != nil {
			t.Fatal(err)
		}
		var schema bound
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, v := range documented(t, chart) {
			want = append(want, v.Path)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, schema.leaves("")); diff != "" {
			t.Errorf("the values of %s (-) and of its schema (+):\n%s", chart, diff)
		}
	}
}

type bound struct{ Properties map[string]bound }

func (b bound) leaves(path string) []string {
	if len(b.Properties) == 0 {
		return []string{path}
	}
	var all []string
	for key, inner := range b.Properties {
		all = append(all, inner.leaves(strings.TrimPrefix(path+"."+key, "."))...)
	}
	slices.Sort(all)
	return all
}

// The READMEs have the tables of the values.
func TestTables(t *testing.T) {
	for _, chart := range []string{helm.Joist, helm.Definitions} {
		readme := chart + "/README.md"
		text, err := os.ReadFile(readme)
		if err != nil {
			t.Fatal(err)
		}
		before, _, found := strings.Cut(string(text), "## Values\n")
		if !found {
			t.Fatalf("%s has no section Values", readme)
		}
		golden.Compare(t, readme, before+"## Values\n\n"+helm.Table(documented(t, chart)))
	}
}

// Values that cannot work are rejected together, with the fix. An invalid value is an
// error; an unknown key is a note (TestGoldens, everything).
func TestInvalidValuesAreRejected(t *testing.T) {
	for _, c := range []struct {
		name string
		set  []string
		want []string
	}{
		{"nothing", nil, []string{
			"settings.clusterName is empty. Try: --set settings.clusterName=", "settings.region is empty", "settings.accountID is empty",
		}},
		{"an account id that is too short", append(slices.Clone(needed), "settings.accountID=42"), []string{`settings.accountID is "42"`, "12 digits"}},
		{"a variable that was not replaced", append(slices.Clone(needed), "settings.clusterName=${CLUSTER_NAME}"), []string{"clusterName"}},
		{"a policy", append(slices.Clone(needed), "settings.preferencePolicy=Maybe"), []string{"preferencePolicy", "Respect"}},
		{"a duration", append(slices.Clone(needed), "settings.batchMaxDuration=10"), []string{"batchMaxDuration"}},
		{"a gate", append(slices.Clone(needed), "settings.featureGates.nodeRepair=on"), []string{"nodeRepair"}},
		{"DRA in general and in particular", append(slices.Clone(needed), "settings.enableDRA=true", "settings.awsFeatureGates.draEFA=true", "settings.ignoreDRARequests=false"),
			[]string{"settings.enableDRA is mutually exclusive with settings.awsFeatureGates.draEFA, settings.ignoreDRARequests: unset them, or unset settings.enableDRA"}},
		{"DRA in general, and a gate off", append(slices.Clone(needed), "settings.enableDRA=true", "settings.awsFeatureGates.draNVIDIAGPU=false"),
			[]string{"settings.enableDRA is mutually exclusive with settings.awsFeatureGates.draNVIDIAGPU: unset them, or unset settings.enableDRA"}},
		{"legacy repair that terminates first", append(slices.Clone(needed), "settings.legacyNodeRepair=true", "settings.featureGates.terminateFirstRepair=true"),
			[]string{"settings.legacyNodeRepair can't be combined with settings.featureGates.terminateFirstRepair: the legacy node repair controller doesn't support terminate-first repair"}},
		{"a level", append(slices.Clone(needed), "logLevel=loud"), []string{"logLevel"}},
		{"a port", append(slices.Clone(needed), "controller.metrics.port=80800"), []string{"port"}},
		{"replicas", append(slices.Clone(needed), "replicas=-1"), []string{"replicas"}},
		{"a share", append(slices.Clone(needed), "settings.maxNodeShare=2"), []string{"maxNodeShare"}},
		{"Pod Identity on Fargate", append(slices.Clone(needed), `nodeSelector.eks\.amazonaws\.com/compute-type=fargate`), []string{"watcher would run on Fargate without credentials", "oidcProvider", "lifecycle would"}},
		{"an image with a tag", append(slices.Clone(needed), "controller.image.repository=registry.example.com/joist:v1"), []string{"/controller/image/repository"}},
		{"a mirror with a scheme", append(slices.Clone(needed), "global.imageRegistry=https://registry.example.com"), []string{"/global/imageRegistry"}},
		{"a pull secret without its key", append(slices.Clone(needed), "imagePullSecrets[0]=registry"), []string{"/imagePullSecrets/0"}},
		{"a CIDR without its length", append(slices.Clone(needed), "networkPolicy.awsCIDRs[0]=10.0.0.0"), []string{"/networkPolicy/awsCIDRs/0"}},
		{"no CIDR", append(slices.Clone(needed), "networkPolicy.apiServerCIDRs=null", "networkPolicy.awsCIDRs={}"), []string{"awsCIDRs"}},
		{"a peer that a NetworkPolicy does not have", append(slices.Clone(needed), "networkPolicy.metricsFrom[0].matchLabels.app=prometheus"), []string{"/networkPolicy/metricsFrom/0"}},
		{"an egress rule that a NetworkPolicy does not have", append(slices.Clone(needed), "networkPolicy.extraEgress[0].from[0].cidr=x"), []string{"/networkPolicy/extraEgress/0"}},
		{"a label that Kubernetes rejects", append(slices.Clone(needed), "dashboards.label=grafana dashboard"), []string{"/dashboards/label"}},
		{"a label's value that is not text", append(slices.Clone(needed), "dashboards.labelValue=1"), []string{"/dashboards/labelValue"}},
		{"an object without its kind", append(slices.Clone(needed), "extraObjects[0].apiVersion=v1"), []string{"/extraObjects/0", "kind"}},
		{"a digest", append(slices.Clone(needed), "watcher.image.digest=latest"), []string{"digest"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := helm.Template(t.Context(), helm.Release{Name: "joist", Namespace: "joist", Chart: helm.Joist, Set: c.set})
			if err == nil {
				t.Fatal("the chart was rendered")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\ndoes not say %q", err, want)
				}
			}
		})
	}
}

// Either DRA gate and enableDRA turn IGNORE_DRA_REQUESTS off, which is always rendered. The gates of AWS follow.
func TestDRASettings(t *testing.T) {
	for name, c := range map[string]struct {
		set           []string
		ignore, gates string
	}{
		"nothing":            {nil, "true", "DRANVIDIAGPU=false,DRAEFA=false"},
		"explicitly ignored": {[]string{"settings.ignoreDRARequests=true"}, "true", "DRANVIDIAGPU=false,DRAEFA=false"},
		"not ignored":        {[]string{"settings.ignoreDRARequests=false"}, "false", "DRANVIDIAGPU=false,DRAEFA=false"},
		"all":                {[]string{"settings.enableDRA=true"}, "false", "DRANVIDIAGPU=true,DRAEFA=true"},
		"one gate":           {[]string{"settings.awsFeatureGates.draNVIDIAGPU=true"}, "false", "DRANVIDIAGPU=true,DRAEFA=false"},
		"a gate is stronger": {[]string{"settings.awsFeatureGates.draEFA=true", "settings.ignoreDRARequests=true"}, "false", "DRANVIDIAGPU=false,DRAEFA=true"},
		"gates that are off": {[]string{"settings.awsFeatureGates.draEFA=false", "settings.awsFeatureGates.draNVIDIAGPU=false"}, "true", "DRANVIDIAGPU=false,DRAEFA=false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := given{namespace: "joist", set: append(slices.Clone(needed), c.set...)}.deployments(t)
			watcher := environ(all["watcher"])
			if watcher[settings.IgnoreDRA] != c.ignore || !strings.Contains(watcher[settings.AWSGates], c.gates) || environ(all["lifecycle"])[settings.AWSGates] != watcher[settings.AWSGates] {
				t.Errorf("%s=%s, %s=%s", settings.IgnoreDRA, watcher[settings.IgnoreDRA], settings.AWSGates, watcher[settings.AWSGates])
			}
		})
	}
}

// The watcher parses the value, however it is written.
func TestSchedulerConfigValue(t *testing.T) {
	const file = `
settings:
  schedulerConfig: `
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"object":   {"{podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}}", 1},
		"text":     {"|\n    podTopologySpread:\n      defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]", 1},
		"empty":    {`""`, 0},
		"no rules": {"{podTopologySpread: {}}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(path, []byte(file+c.text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			g := given{namespace: "joist", files: []string{path}, set: needed}
			read, err := settings.Read(func(name string) (string, bool) {
				text, ok := environ(g.deployments(t)["watcher"])[name]
				return text, ok && name == settings.Scheduler
			})
			if err != nil || len(read.DefaultConstraints) != c.want {
				t.Errorf("%d constraints: %v", len(read.DefaultConstraints), err)
			}
			if grants := strings.Contains(g.render(t), "replicationcontrollers"); grants != (c.want > 0) {
				t.Errorf("rights for selectors: %t", grants)
			}
		})
	}
}

// The charts can be installed on the Kubernetes versions that Karpenter supports, and newer ones.
func TestKubernetesRange(t *testing.T) {
	for version, works := range map[string]bool{"1.25": false, "1.26": true, "1.37": true, "1.38": true} {
		for _, chart := range []string{helm.Joist, helm.Definitions} {
			_, err := helm.Template(t.Context(), helm.Release{Name: "joist", Namespace: "joist", Chart: chart, Set: needed}, "--kube-version="+version)
			if (err == nil) != works || err != nil && !strings.Contains(err.Error(), "incompatible with Kubernetes") {
				t.Errorf("%s on Kubernetes %s: %v", chart, version, err)
			}
		}
	}
}
