package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"
	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/manifest"
	"github.com/joist-autoscaler/joist/shared/manifest/convert"
)

// setName is the name in remarks of the values of --set.
const setName = "--set"

// convertFlags are the flags of `joist convert` and `joist lint`.
type convertFlags struct {
	files, sets, vars []string
	cluster, values   string
	diff, write       bool
	force, expand     bool
	format            string
}

func convertCommand(env Env) *cobra.Command {
	var flags convertFlags
	cmd := &cobra.Command{
		Use:   "convert {-f FILE... | --set KEY=VALUE...}",
		Short: "Rewrite manifests and values of older versions of Karpenter, or node groups, for Joist",
		Long: "Convert rewrites Provisioners, AWSNodeTemplates and v1beta1 manifests as v1, Karpenter's ConfigMaps and values of its\n" +
			"chart as values of Joist's chart, and the AWS CLI's output about Auto Scaling groups and managed node groups as NodePools\n" +
			"and EC2NodeClasses. Comments and the order stay; documents without a change keep their bytes. Give all files of a\n" +
			"cluster together: settings of the kubelet move from NodePools to the EC2NodeClasses they refer to. Only groups of\n" +
			"--cluster-name, or of the only cluster that the groups' tags kubernetes.io/cluster/NAME name, are converted; the others\n" +
			"are named.\n\n" +
			"The result goes to stdout, and a remark for each change to stderr, with file, line and remedy.\n\n" +
			"Exit codes: 0 nothing to convert, 2 converted, or there are findings, 1 an error.",
		Example: "  joist convert -f karpenter/ > converted.yaml\n" +
			"  joist convert -f provisioner.yaml --diff\n" +
			"  joist convert -f karpenter/ --write\n" +
			"  kubectl get nodepools,ec2nodeclasses -o yaml | joist convert -f -\n" +
			"  aws autoscaling describe-auto-scaling-groups | joist convert -f - --cluster-name prod\n" +
			"  joist convert --set settings.aws.clusterName=prod --set settings.aws.interruptionQueueName=prod",
		Args: rejectArgument("joist convert -f "),
		RunE: func(cmd *cobra.Command, _ []string) error { return runConvert(cmd, env, flags) },
	}
	f := cmd.Flags()
	addInputFlags(cmd, &flags)
	f.BoolVar(&flags.diff, "diff", false, "print a unified diff instead of the result")
	f.BoolVarP(&flags.write, "write", "w", false, "replace the files by the result")
	f.BoolVar(&flags.force, "force", false, "with --write, write files in which mistakes remain")
	f.StringVar(&flags.values, "values", "", "write the values from Karpenter's ConfigMaps and --set to this file")
	cmd.MarkFlagsMutuallyExclusive("diff", "write")
	formatFlag(cmd, &flags.format, "text", "json")
	return cmd
}

// addInputFlags adds the flags of the input.
func addInputFlags(cmd *cobra.Command, flags *convertFlags) {
	f := cmd.Flags()
	f.StringArrayVarP(&flags.files, "filename", "f", nil, "file or directory of manifests, values or node groups, or - for stdin; may be repeated")
	f.StringArrayVar(&flags.sets, "set", nil, "value of Karpenter's chart, as for helm; may be repeated")
	f.StringVar(&flags.cluster, "cluster-name", "", "name of the EKS cluster in assumed tags and roles, and whose node groups are converted (default: ${CLUSTER_NAME})")
	f.BoolVar(&flags.expand, "expand", false, "replace ${NAME} in the files from the environment")
	f.StringArrayVar(&flags.vars, "var", nil, "replace ${NAME} in the files, as NAME=value; may be repeated")
}

// rejectArgument returns an error about an argument that should be a file of -f.
func rejectArgument(usage string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return usageError(fmt.Errorf("unexpected argument %q: give files with -f", args[0]), usage+args[0])
	}
}

// converted is the result of a conversion with the texts that were read.
type converted struct {
	convert.ConversionResult
	before map[string]string
}

// isChanged reports whether a file differs from the text that was read.
func (c converted) isChanged(file convert.FileResult) bool {
	return c.before[file.Name] != string(file.Text)
}

// convertInputs reads and converts the files and values of the flags.
func convertInputs(cmd *cobra.Command, env Env, flags convertFlags, lint bool) (converted, error) {
	if len(flags.files) == 0 && len(flags.sets) == 0 {
		return converted{}, usageError(errors.New("no file given"), cmd.CommandPath()+" -f provisioner.yaml")
	}
	vars, err := collectVars(env, planFlags{expand: flags.expand, vars: flags.vars})
	if err != nil {
		return converted{}, err
	}
	out := converted{before: map[string]string{}}
	var inputs []convert.Input
	size := 0
	for _, name := range flags.files {
		files, err := listFiles(name)
		if err != nil {
			return converted{}, err
		}
		for _, file := range files {
			if _, twice := out.before[file]; twice {
				continue
			}
			data, err := readSource(cmd.InOrStdin(), file, manifest.FileMax)
			if err != nil {
				return converted{}, err
			}
			size += len(bytes.TrimSpace(data))
			out.before[file] = string(data)
			inputs = append(inputs, convert.Input{Name: file, Data: []byte(manifest.ExpandText(string(data), vars))})
		}
	}
	if len(flags.sets) > 0 {
		text, err := parseSets(flags.sets)
		if err != nil {
			return converted{}, err
		}
		inputs = append(inputs, convert.Input{Name: setName, Data: []byte(manifest.ExpandText(text, vars))})
	}
	if size == 0 && len(flags.sets) == 0 {
		names := strings.Join(flags.files, ", ")
		if names == "-" {
			names = "stdin"
		}
		return converted{}, usageError(fmt.Errorf("no text in %s", names), cmd.CommandPath()+" -f provisioner.yaml")
	}
	shown := startProgress(cmd, "converting %d files, %.1f MB", len(inputs), float64(size)/1e6)
	defer shown.Stop()
	options := convert.ConversionOptions{ClusterName: flags.cluster, Lint: lint}
	if flags.values != "" {
		options.ValuesInput = setName
	}
	out.ConversionResult = convert.Convert(inputs, options)
	return out, nil
}

// parseSets returns the values of --set as YAML, with Helm's own rules.
func parseSets(sets []string) (string, error) {
	values := map[string]any{}
	for _, one := range sets {
		if err := strvals.ParseInto(one, values); err != nil {
			return "", usageError(fmt.Errorf("invalid --set %q: %w", one, err), "--set settings.clusterName=my-cluster")
		}
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("writing the values of --set: %w", err)
	}
	return string(text), nil
}

func runConvert(cmd *cobra.Command, env Env, flags convertFlags) error {
	result, err := convertInputs(cmd, env, flags, false)
	if err != nil {
		return err
	}
	if flags.values != "" && result.Values != "" {
		if err := replaceFile(flags.values, []byte(result.Values)); err != nil {
			return err
		}
	}
	if flags.format == "json" {
		if err := printJSON(cmd.OutOrStdout(), newConversion(result, true)); err != nil {
			return err
		}
	} else {
		printRemarks(cmd.ErrOrStderr(), result.Remarks)
	}
	switch {
	case flags.write:
		err = writeFiles(cmd, flags, result)
	case flags.format == "json":
	case flags.diff:
		err = printDiffs(env.Stdout, result)
	default:
		err = printFiles(env.Stdout, result)
	}
	if err == nil && hasFindings(result) {
		return errChanges
	}
	return err
}

// hasFindings reports whether anything was converted, or needs attention.
func hasFindings(result converted) bool {
	if slices.ContainsFunc(result.Files, result.isChanged) || result.Values != "" {
		return true
	}
	return result.Count(convert.Unrepaired) > 0 || result.Count(convert.Check) > 0
}

// printRemarks prints a line for each remark, and a summary.
func printRemarks(w io.Writer, remarks []convert.Remark) {
	counts := map[convert.RemarkSeverity]int{}
	for _, remark := range remarks {
		counts[remark.Severity]++
		fmt.Fprintln(w, remark.String())
	}
	if len(remarks) == 0 {
		return
	}
	summary := fmt.Sprintf("%d converted, %d to check, %d unrepaired", counts[convert.Converted], counts[convert.Check], counts[convert.Unrepaired])
	if n := counts[convert.Warning]; n > 0 {
		summary += ", " + simulate.FormatCount(n, "warning")
	}
	fmt.Fprintln(w, summary)
}

// printFiles prints the new texts as they are, also their control characters.
func printFiles(w io.Writer, result converted) error {
	var b strings.Builder
	for _, file := range result.Files {
		if file.Kind == convert.Unreadable {
			continue // The remark says why.
		}
		if b.Len() > 0 && !strings.HasPrefix(string(file.Text), "---") {
			if !strings.HasSuffix(b.String(), "\n") {
				b.WriteByte('\n')
			}
			b.WriteString("---\n")
		}
		b.Write(file.Text)
	}
	return writeText(w, b.String())
}

// printDiffs prints a unified diff of each file that changes.
func printDiffs(w io.Writer, result converted) error {
	var b strings.Builder
	for _, file := range result.Files {
		b.WriteString(udiff.Unified(file.Name, file.Name, result.before[file.Name], string(file.Text)))
	}
	return writeText(w, b.String())
}

func writeText(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fault.E("writing the output", fault.Invalid, err)
	}
	return nil
}

// writeFiles replaces the files that change, all of them or, if a mistake remains, none.
func writeFiles(cmd *cobra.Command, flags convertFlags, result converted) error {
	if n := result.Count(convert.Unrepaired); n > 0 && !flags.force {
		return fault.F("writing the files", fault.Invalid, "no file was written, because of %s", simulate.FormatCount(n, "mistake")).WithHint("correct the lines above, or add --force")
	}
	var changed []convert.FileResult
	for _, file := range result.Files {
		switch {
		case !result.isChanged(file):
		case file.Name == "-" || file.Name == setName:
			return usageError(fmt.Errorf("--write cannot replace %s", map[string]string{"-": "stdin", setName: "the values of --set"}[file.Name]), "joist convert without --write prints the result")
		case file.Kind == convert.NodeGroups:
			return usageError(fmt.Errorf("--write would replace %s, the output of the AWS CLI", file.Name), "joist convert -f "+file.Name+" > nodepools.yaml")
		default:
			changed = append(changed, file)
		}
	}
	for _, file := range changed {
		if err := replaceFile(file.Name, file.Text); err != nil {
			return err
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "wrote "+file.Name)
	}
	return nil
}

// replaceFile writes a file next to the old one and renames it, so that a crash leaves one of the two. The file
// keeps its permissions, and a symbolic link stays one.
func replaceFile(name string, text []byte) error {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	mode := os.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	temporary, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return fault.E("writing "+name, fault.Denied, err)
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(text)
	err = errors.Join(err, temporary.Chmod(mode), temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), name)
	}
	if err != nil {
		return fault.E("writing "+name, fault.Denied, err)
	}
	return nil
}

// newConversion returns the JSON document of a conversion.
func newConversion(result converted, texts bool) report.Conversion {
	out := report.Conversion{APIVersion: apiVersion, Kind: "Conversion", Files: []report.ConvertedFile{}, Remarks: []report.ConversionRemark{}, Values: result.Values}
	for _, file := range result.Files {
		one := report.ConvertedFile{Name: file.Name, Kind: string(file.Kind), Changed: result.isChanged(file)}
		if texts {
			one.Text = string(file.Text)
		}
		out.Changed = out.Changed || one.Changed
		out.Files = append(out.Files, one)
	}
	for _, r := range result.Remarks {
		out.Remarks = append(out.Remarks, report.ConversionRemark{
			File: r.File, Line: r.Line, Column: r.Column, Severity: string(r.Severity), Path: r.Path, Message: r.Text, Remedy: r.Remedy,
		})
	}
	return out
}
