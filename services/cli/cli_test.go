package cli_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/host/build"
)

var update = flag.Bool("update", false, "write the golden files")

// runJoist runs a command as a terminal would and returns its output.
func runJoist(t *testing.T, stdin string, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(context.Background(), cli.Env{
		Args: args, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Environ: environ,
		Now:   func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) },
		After: hideProgress,
		Build: build.Info{Version: "v1.2.3", Commit: "abc", Date: "2026-11-23T10:00:00Z", Go: "go1"}, Platform: "os/arch",
	})
	return out.String(), errs.String(), code
}

// TestGolden compares the output of each command with a golden file. The JSON of plan and
// version is a contract: a change of these files may break users' programs.
func TestGolden(t *testing.T) {
	seed := []string{"plan", "-f", "testdata/nodepool.yaml", "-f", "testdata/nodeclass.yaml", "-f", "testdata/inflate.yaml", "--region", "ap-northeast-2"}
	with := func(args []string, more ...string) []string { return append(append([]string{}, args...), more...) }
	for _, tt := range []struct {
		name string
		args []string
		code int
	}{
		{"version", []string{"version"}, cli.ExitNothing},
		{"version-flag", []string{"--version"}, cli.ExitNothing},
		{"version-json", []string{"version", "-o", "json"}, cli.ExitNothing},
		{"help", []string{"--help"}, cli.ExitNothing},
		{"help-exit-codes", []string{"help", "exit-codes"}, cli.ExitNothing},
		{"unknown-subcommand", []string{"dead", "lits"}, cli.ExitError},
		{"unknown-extra-argument", []string{"version", "now"}, cli.ExitError},
		{"unknown-near-flag", []string{"queues", "--clutser", "prod"}, cli.ExitError},
		{"plan-yaml", with(seed, "-o", "yaml", "--var", "EKS_CLUSTER_NAME=prod", "--var", "KARPENTER_NODE_ROLE=nodes"), cli.ExitChanges},
		{"budgets-name", []string{"budgets", "-f", "testdata/budgets.yaml", "-o", "name"}, cli.ExitNothing},
		{"help-plan", []string{"plan", "--help"}, cli.ExitNothing},
		{"help-budgets", []string{"budgets", "--help"}, cli.ExitNothing},
		{"budgets", []string{"budgets", "-f", "testdata/budgets.yaml", "--nodes", "100"}, cli.ExitNothing},
		{"budgets-json", []string{"budgets", "-f", "testdata/budgets.yaml", "--days", "2", "-o", "json"}, cli.ExitNothing},
		{"budgets-scenario", []string{"budgets", "--scenario", tiny}, cli.ExitNothing},
		{"budgets-default", []string{"budgets", "-f", "testdata/nodepool.yaml"}, cli.ExitNothing},
		{"budgets-wrong", []string{"budgets", "-f", "testdata/budgets-wrong.yaml"}, cli.ExitError},
		{"budgets-nothing", []string{"budgets"}, cli.ExitError},
		{"budgets-no-pool", []string{"budgets", "-f", "testdata/inflate.yaml"}, cli.ExitError},
		{"budgets-no-day", []string{"budgets", "-f", "testdata/budgets.yaml", "--days", "0"}, cli.ExitError},
		{"help-convert", []string{"convert", "--help"}, cli.ExitNothing},
		{"help-lint", []string{"lint", "--help"}, cli.ExitNothing},
		{"convert", []string{"convert", "-f", "testdata/provisioner.yaml", "--cluster-name", "prod"}, cli.ExitChanges},
		{"convert-diff", []string{"convert", "-f", "testdata/nodepool-limit.yaml", "--diff"}, cli.ExitChanges},
		{"convert-json", []string{"convert", "-f", "testdata/nodepool-limit.yaml", "-o", "json"}, cli.ExitChanges},
		{"convert-set", []string{"convert", "--set", "settings.aws.clusterName=prod,settings.aws.reservedENIs=1"}, cli.ExitChanges},
		{"convert-bad-set", []string{"convert", "--set", "settings"}, cli.ExitError},
		{"convert-nothing", []string{"convert", "-f", "testdata/nodepool.yaml"}, cli.ExitNothing},
		{"convert-no-file", []string{"convert"}, cli.ExitError},
		{"convert-write-stdin", []string{"convert", "--set", "clusterName=prod", "--write"}, cli.ExitError},
		{"lint", []string{"lint", "-f", "testdata/provisioner.yaml"}, cli.ExitChanges},
		{"lint-json", []string{"lint", "-f", "testdata/nodepool-limit.yaml", "-o", "json"}, cli.ExitChanges},
		{"help-queues", []string{"queues", "--help"}, cli.ExitNothing},
		{"help-dead", []string{"dead", "--help"}, cli.ExitNothing},
		{"help-replay", []string{"replay", "--help"}, cli.ExitNothing},
		{"help-doctor", []string{"doctor", "--help"}, cli.ExitNothing},
		{"doctor-odd-store", []string{"doctor", "--cluster", "prod", "--store", "bucket"}, cli.ExitError},
		{"queues-nothing", []string{"queues"}, cli.ExitError},
		{"queues-odd-cluster", []string{"queues", "--cluster", "my cluster"}, cli.ExitError},
		{"dead-no-id", []string{"dead", "show", "--cluster", "prod"}, cli.ExitError},
		{"dead-no-limit", []string{"dead", "list", "--cluster", "prod", "--limit", "0"}, cli.ExitError},
		{"dead-odd-limit", []string{"dead", "list", "--cluster", "prod", "--limit", "many"}, cli.ExitError},
		{"replay-no-rate", []string{"replay", "--cluster", "prod", "--queue", "planner", "--rate", "0"}, cli.ExitError},
		{"replay-both", []string{"replay", "--cluster", "prod", "--queue", "planner", "--yes", "--dry-run"}, cli.ExitError},
		{"replay-no-yes", []string{"replay", "--cluster", "prod", "--queue", "planner", "--dry-run=false"}, cli.ExitError},
		{"help-consolidate", []string{"consolidate", "--help"}, cli.ExitNothing},
		{"consolidate-nothing", []string{"consolidate"}, cli.ExitError},
		{"help-simulate", []string{"simulate", "--help"}, cli.ExitNothing},
		{"simulate", []string{"simulate", "--scenario", tiny, "--remove", "node/node-1"}, cli.ExitChanges},
		{"simulate-json", []string{"simulate", "--scenario", tiny, "--remove", "node/node-1", "-o", "json"}, cli.ExitChanges},
		{"simulate-nothing", []string{"simulate", "--scenario", tiny}, cli.ExitError},
		{"simulate-no-percent", []string{"simulate", "--scenario", tiny, "--spot-storm", "many"}, cli.ExitError},
		{"simulate-no-node", []string{"simulate", "--scenario", tiny, "--remove", "web"}, cli.ExitError},
		{"help-explain", []string{"explain", "--help"}, cli.ExitNothing},
		{"explain-missing-node", []string{"explain", "node/node-9", "--scenario", tiny}, cli.ExitError},
		{"explain-nothing", []string{"explain", "pod/web"}, cli.ExitError},
		{"explain-no-object", []string{"explain", "pod"}, cli.ExitError},
		{"explain-unknown-kind", []string{"explain", "deployment", "web"}, cli.ExitError},
		{"explain-pod-scenario", []string{"explain", "pod", "web-0", "--scenario", tiny}, cli.ExitNothing},
		{"explain-pod-huge", []string{"explain", "pod", "huge", "--scenario", tiny}, cli.ExitNothing},
		{"explain-pod-huge-json", []string{"explain", "pod", "huge", "--scenario", tiny, "-o", "json"}, cli.ExitNothing},
		{"explain-nodepool-scenario", []string{"explain", "nodepool", "default", "--scenario", tiny}, cli.ExitNothing},
		{"plan", seed, cli.ExitChanges},
		{"plan-json", with(seed, "-o", "json", "--var", "EKS_CLUSTER_NAME=prod", "--var", "KARPENTER_NODE_ROLE=nodes"), cli.ExitChanges},
		{"plan-price-limit", with(seed, "--price-limit", "$0.05"), cli.ExitChanges},
		{"plan-no-dollars", with(seed, "--price-limit", "lots"), cli.ExitError},
		{"plan-scenario-price-limit", []string{"plan", "--scenario", tiny, "--price-limit", "1"}, cli.ExitError},
		{"plan-mixed", []string{"plan", "-f", "testdata/mixed.yaml", "--region", "eu-central-1"}, cli.ExitChanges},
		{"plan-mixed-json", []string{"plan", "-f", "testdata/mixed.yaml", "--region", "eu-central-1", "-o", "json"}, cli.ExitChanges},
		{"plan-nothing", []string{"plan", "-f", "testdata/nothing.yaml", "-f", "testdata/nodepool.yaml", "--region", "us-east-1"}, cli.ExitNothing},
		{"plan-empty", []string{"plan", "-f", "-", "--region", "us-east-1"}, cli.ExitError},
		{"plan-without-pools", []string{"plan", "-f", "testdata/inflate.yaml", "--region", "us-east-1"}, cli.ExitChanges},
		{"problems", []string{"plan", "-f", "testdata/nodepool-limit.yaml", "-f", "testdata/broken.yaml", "--region", "us-east-1"}, cli.ExitError},
		{"no-file", []string{"plan"}, cli.ExitError},
		{"no-region", []string{"plan", "-f", "testdata/inflate.yaml"}, cli.ExitError},
		{"unknown-region", []string{"plan", "-f", "testdata/inflate.yaml", "--region", "mars-1"}, cli.ExitError},
		{"unknown-file", []string{"plan", "-f", "testdata/none.yaml", "--region", "us-east-1"}, cli.ExitError},
		{"unknown-format", []string{"plan", "-f", "testdata/inflate.yaml", "-o", "xml"}, cli.ExitError},
		{"unknown-flag", []string{"plan", "--file", "x"}, cli.ExitError},
		{"unknown-command", []string{"plna"}, cli.ExitError},
		{"unknown-command-help", []string{"dead", "lits", "--help"}, cli.ExitError},
		{"unknown-help-topic", []string{"help", "plna"}, cli.ExitError},
		{"unknown-shell", []string{"completion", "bsh"}, cli.ExitError},
		{"no-value", []string{"explain", "pod", "a", "-n"}, cli.ExitError},
		{"report-name", []string{"report", "--scenario", tiny, "-o", "name"}, cli.ExitNothing},
		{"report-wide", []string{"report", "--scenario", tiny, "-o", "wide"}, cli.ExitNothing},
		{"unknown-argument", []string{"plan", "pool.yaml"}, cli.ExitError},
		{"bad-var", []string{"plan", "-f", "testdata/inflate.yaml", "--region", "us-east-1", "--var", "A"}, cli.ExitError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := runJoist(t, "", nil, tt.args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			got := fmt.Sprintf("$ joist %s\n%s\nstderr:\n%s\nexit code %d\n", strings.Join(tt.args, " "), stdout, stderr, code)
			compareGolden(t, tt.name, got)
		})
	}
}

// hideProgress is an Env.After whose timers never end, so that a slow machine prints no progress.
func hideProgress(time.Duration) <-chan time.Time { return nil }

// compareGolden compares a text with a golden file.
func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	golden := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (run the test with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

func TestPlanReadsStdinAndTheEnvironment(t *testing.T) {
	var joined strings.Builder
	for _, name := range []string{"nodepool", "nodeclass", "inflate"} {
		text, err := os.ReadFile("testdata/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		joined.WriteString("---\n" + string(text))
	}
	manifests := joined.String()
	environ := []string{"AWS_DEFAULT_REGION=ap-northeast-2", "EKS_CLUSTER_NAME=prod", "KARPENTER_NODE_ROLE=nodes"}
	stdout, stderr, code := runJoist(t, manifests, environ, "plan", "-f", "-", "--expand")
	if code != cli.ExitChanges || stderr != "" || !strings.Contains(stdout, "to launch for 5 pods") {
		t.Errorf("code %d, stderr %q, stdout:\n%s", code, stderr, stdout)
	}
	if _, stderr, _ := runJoist(t, manifests, environ, "plan", "-f", "-"); !strings.Contains(stderr, "${KARPENTER_NODE_ROLE} is not filled in") {
		t.Errorf("without --expand, stderr is %q", stderr)
	}
}

func TestPlanReadsADirectory(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"nodepool", "nodeclass", "inflate"} {
		text, err := os.ReadFile("testdata/" + name + ".yaml")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".yml"), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	stdout, _, code := runJoist(t, "", nil, "plan", "-f", dir, "--region", "ap-northeast-2")
	if code != cli.ExitChanges || !strings.Contains(stdout, "to launch for 5 pods") {
		t.Errorf("code %d:\n%s", code, stdout)
	}
	if _, stderr, code := runJoist(t, "", nil, "plan", "-f", t.TempDir(), "--region", "us-east-1"); code != cli.ExitError || !strings.Contains(stderr, "has no .yaml") {
		t.Errorf("an empty directory: code %d, %s", code, stderr)
	}
}

// TestPlanWarnsOfIgnoredKinds: plan warns of kinds that it ignores, whether or not it can
// parse them.
func TestPlanWarnsOfIgnoredKinds(t *testing.T) {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"
	_, stderr, _ := runJoist(t, text, nil, "plan", "-f", "-", "--region", "us-east-1")
	want := "warning: -:1:1: ConfigMap of v1 is ignored: planning does not use it\n" +
		"warning: -:5:1: Service of v1 is ignored: planning does not use it\n"
	if diff := cmp.Diff(want, stderr); diff != "" {
		t.Error(diff)
	}
}

// TestPlanWarnsOfLargeUserData: plan warns of user data near EC2's limit.
func TestPlanWarnsOfLargeUserData(t *testing.T) {
	var all strings.Builder
	for _, name := range []string{"nodepool", "inflate", "nodeclass"} {
		text, err := os.ReadFile("testdata/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString("---\n" + string(text))
	}
	all.WriteString("  userData: \"#!/bin/sh #" + strings.Repeat("x", 14400) + "\"\n")
	_, stderr, code := runJoist(t, all.String(), nil, "plan", "-f", "-", "--region", "ap-northeast-2")
	if code != cli.ExitChanges || !strings.Contains(stderr, "warning: NodePool default, EC2NodeClass default: the user data has") {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
}

// TestCardListsTheCommands compares README.md with the help.
func TestCardListsTheCommands(t *testing.T) {
	card, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	help, _, _ := runJoist(t, "", nil, "--help")
	_, listed, _ := strings.Cut(help, "Available Commands:\n")
	listed, _, _ = strings.Cut(listed, "\n\n")
	there := regexp.MustCompile(`(?m)^  (\w+)`).FindAllStringSubmatch(listed, -1)
	if len(there) < 3 {
		t.Fatalf("the help lists %d commands:\n%s", len(there), help)
	}
	for _, verb := range there {
		if verb[1] != "help" && !strings.Contains(string(card), "| `joist "+verb[1]) {
			t.Errorf("the card has no row for joist %s", verb[1])
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `joist (\\w+)").FindAllStringSubmatch(string(card), -1) {
		if !strings.Contains(listed, "  "+row[1]+" ") {
			t.Errorf("the card lists joist %s, which is no command", row[1])
		}
	}
}
