package readme

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/integration/environment/helm"
)

// helmFlags returns the flags of the helm commands that pages use.
func helmFlags() (flags *pflag.FlagSet, set, files *[]string) {
	flags = pflag.NewFlagSet("helm", pflag.ContinueOnError)
	for _, name := range []string{"install", "create-namespace", "take-ownership", "wait", "reuse-values"} {
		flags.Bool(name, false, "")
	}
	flags.StringP("namespace", "n", "", "")
	flags.String("version", "", "")
	set = flags.StringArray("set", nil, "")
	flags.StringArrayVar(set, "set-string", nil, "")
	files = flags.StringArrayP("values", "f", nil, "")
	return flags, set, files
}

// releasedCharts is where a release publishes the folders of deploy/charts.
const releasedCharts = "oci://ghcr.io/joist-autoscaler/charts/"

// helmWithoutChart are the helm commands of the pages that take no chart, and the largest number of their arguments.
var helmWithoutChart = map[string]int{"uninstall": 1, "rollback": 1, "list": 0, "test": 1, "get": 2}

// checkHelm checks the chart, and that each set key is a value of it.
func checkHelm(p place) error {
	flags, set, files := helmFlags()
	args := slices.DeleteFunc(slices.Clone(p.Args[1:]), func(arg string) bool { return arg == "…" })
	if err := flags.Parse(args); err != nil {
		return err
	}
	verb, names := flags.Arg(0), flags.NArg()-1
	if most, ok := helmWithoutChart[verb]; ok && names <= most {
		return nil
	}
	if names != 2 || !slices.Contains([]string{"upgrade", "install", "template"}, verb) {
		return fmt.Errorf("helm %s with %d names is not known here", verb, names)
	}
	values, err := readChartValues(p, flags.Arg(2))
	if err != nil {
		return err
	}
	for _, setting := range *set {
		key, _, ok := strings.Cut(setting, "=")
		if !ok || !settable(strings.ReplaceAll(key, `\.`, "_"), values) {
			return fmt.Errorf("the chart has no value %s", key)
		}
	}
	for _, file := range *files {
		if err := p.exists(file); err != nil {
			return err
		}
	}
	return nil
}

func readChartValues(p place, chart string) ([]helm.Value, error) {
	folders := p.find(strings.Replace(chart, releasedCharts, "deploy/charts/", 1))
	if len(folders) != 1 {
		return nil, fmt.Errorf("there is no chart %s", chart)
	}
	return helm.Values(folders[0])
}

// settable reports whether a key is a value, or a member of a value that is a free-form
// map.
func settable(key string, values []helm.Value) bool {
	return slices.ContainsFunc(values, func(v helm.Value) bool {
		return v.Path == key || strings.HasPrefix(v.Default, "{") && strings.HasPrefix(key, v.Path+".")
	})
}

// verbsOfKubectl are kubectl's commands, and whether their first argument is a kind.
var verbsOfKubectl = map[string]bool{
	"get": true, "delete": true, "scale": true, "wait": true, "annotate": true, "describe": true, "patch": true, "apply": false, "logs": false, "rollout": false,
}

func checkKubectl(p place) error {
	flags := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	flags.StringArrayP("filename", "f", nil, "")
	for _, name := range []string{"overwrite", "all", "server-side"} {
		flags.Bool(name, false, "")
	}
	flags.BoolP("watch", "w", false, "")
	flags.BoolP("all-namespaces", "A", false, "")
	for _, name := range []string{"for", "timeout", "raw", "cascade", "type"} {
		flags.String(name, "", "")
	}
	flags.Bool("force-conflicts", false, "")
	flags.String("wait", "true", "")
	flags.Lookup("wait").NoOptDefVal = "true"
	flags.Int("replicas", 0, "")
	for short, name := range map[string]string{"p": "patch", "n": "namespace", "l": "selector", "o": "output", "c": "container"} {
		flags.StringP(name, short, "", "")
	}
	if err := flags.Parse(p.Args[1:]); err != nil {
		return err
	}
	ofKind, ok := verbsOfKubectl[flags.Arg(0)]
	if !ok {
		return fmt.Errorf("kubectl %s is not known here", flags.Arg(0))
	}
	if kinds := flags.Arg(1); ofKind && kinds != "" {
		kind, _, _ := strings.Cut(kinds, "/")
		if err := known("kind", strings.Split(kind, ","), p.Kinds); err != nil {
			return err
		}
	}
	for _, file := range flagged(p.Args, "-f", "--filename") {
		if file == "-" || strings.HasPrefix(file, "https://") {
			continue
		}
		if err := p.manifests(file); err != nil {
			return err
		}
	}
	return nil
}

// manifests checks that kubectl could apply the files.
func (p place) manifests(file string) error {
	if err := p.exists(file); err != nil {
		return err
	}
	files := p.find(file)
	if isDir(files[0]) {
		var err error
		if files, err = filepath.Glob(filepath.Join(files[0], "*.yaml")); err != nil || len(files) == 0 {
			return fmt.Errorf("%s has no manifests", file)
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var object struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if object.APIVersion == "" || object.Kind == "" {
				return errors.New(file + " has a document that is no manifest")
			}
		}
	}
	return nil
}
