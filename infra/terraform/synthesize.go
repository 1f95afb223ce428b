package terraform

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/infra/stack"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// synthesized is a synthesized template.
type synthesized struct {
	Resources map[string]*synthesizedResource
	Outputs   map[string]struct {
		Description string
		Value       any
	}
	// raw is the template's text.
	raw []byte
}

type synthesizedResource struct {
	Type       string
	Properties map[string]any
	DependsOn  []string
	// Metadata has the construct's path.
	Metadata struct {
		Path string `json:"aws:cdk:path"`
	}
	// DeletionPolicy and UpdateReplacePolicy retain the resource; the module has
	// var.retain_data.
	DeletionPolicy, UpdateReplacePolicy, Condition string
}

// synthesize returns the template of a config. The functions' binaries are placeholders.
func synthesize(c config.Config) (synthesized, error) {
	dir, err := os.MkdirTemp("", "joist-terraform-")
	if err != nil {
		return synthesized{}, err
	}
	defer os.RemoveAll(dir)
	c.Binaries = filepath.Join(dir, "binaries")
	for _, service := range append(slices.Clone(topology.ExternalServices), "spotrole") {
		file := filepath.Join(c.Binaries, service, "bootstrap")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return synthesized{}, err
		}
		if err := os.WriteFile(file, []byte(service), 0o755); err != nil {
			return synthesized{}, err
		}
	}
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(filepath.Join(dir, "cdk.out")), AnalyticsReporting: jsii.Bool(false),
		Context: &map[string]any{"aws:cdk:enable-path-metadata": true}})
	if _, err := stack.New(app, c); err != nil {
		return synthesized{}, err
	}
	raw, err := os.ReadFile(filepath.Join(*app.Synth(nil).Directory(), c.StackName+".template.json"))
	if err != nil {
		return synthesized{}, err
	}
	out := synthesized{raw: raw}
	return out, json.Unmarshal(raw, &out)
}
