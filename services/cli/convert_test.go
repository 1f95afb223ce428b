package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

const limitPool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: a} # name
spec:
  limit: {cpu: 10}
  template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: a}}}
`

// TestConvertWrites replaces files, which keep their permissions and links, and leaves no other file behind.
func TestConvertWrites(t *testing.T) {
	dir := t.TempDir()
	file, link, same := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "link.yaml"), filepath.Join(dir, "same.yaml")
	writeTo(t, file, limitPool, 0o600)
	writeTo(t, same, strings.Replace(strings.Replace(limitPool, "limit:", "limits:", 1), "name: a}", "name: b}", 1), 0o644)
	if err := os.Symlink("a.yaml", link); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := runJoist(t, "", nil, "convert", "-w", "-f", link, "-f", same)
	if code != cli.ExitChanges || stdout != "" || !strings.Contains(stderr, "wrote "+link) || strings.Contains(stderr, "wrote "+same) {
		t.Fatalf("code %d\n%s%s", code, stdout, stderr)
	}
	info, err := os.Lstat(file)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is no link any more (%v)", err)
	}
	if got := readFrom(t, file); got != strings.Replace(limitPool, "limit:", "limits:", 1) {
		t.Errorf("got %s", got)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("%d files: %v", len(entries), entries)
	}
	if _, stderr, code = runJoist(t, "", nil, "convert", "-w", "-f", dir); code != cli.ExitChanges {
		t.Logf("a second run: code %d\n%s", code, stderr)
	}
}

// TestConvertRefuses writes nothing while a mistake remains in any file, unless it is forced.
func TestConvertRefuses(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	wrong := strings.Replace(limitPool, "spec:\n", "spec:\n  unknown: 1\n", 1)
	writeTo(t, good, limitPool, 0o644)
	writeTo(t, bad, wrong, 0o644)
	_, stderr, code := runJoist(t, "", nil, "convert", "-w", "-f", dir)
	if code != cli.ExitError || !strings.Contains(stderr, "bad.yaml:5:3: unrepaired: spec.unknown: unknown field") || !strings.Contains(stderr, "no file was written, because of 1 mistake") {
		t.Errorf("code %d\n%s", code, stderr)
	}
	if readFrom(t, good) != limitPool || readFrom(t, bad) != wrong {
		t.Error("a file was written")
	}
	if _, stderr, code = runJoist(t, "", nil, "convert", "-w", "--force", "-f", dir); code != cli.ExitChanges || readFrom(t, good) == limitPool || readFrom(t, bad) == wrong {
		t.Errorf("code %d\n%s", code, stderr)
	}
	groups := filepath.Join(dir, "groups.json")
	writeTo(t, groups, `{"AutoScalingGroups": [{"AutoScalingGroupName": "a", "Tags": [{"Key": "kubernetes.io/cluster/prod"}], "Instances": [{"InstanceType": "m5.large"}]}]}`, 0o644)
	if _, stderr, code = runJoist(t, "", nil, "convert", "-w", "-f", groups); code != cli.ExitError || !strings.Contains(stderr, "the output of the AWS CLI") {
		t.Errorf("code %d\n%s", code, stderr)
	}
}

// TestConvertNeedsText reports input without any text, such as that of a command that failed before a pipe.
func TestConvertNeedsText(t *testing.T) {
	for _, verb := range []string{"convert", "lint"} {
		if _, stderr, code := runJoist(t, " \n", nil, verb, "-f", "-"); code != cli.ExitError || !strings.Contains(stderr, "no text in stdin\nTry: joist "+verb+" -f") {
			t.Errorf("%s: code %d\n%s", verb, code, stderr)
		}
	}
}

// TestConvertKeepsBytes prints carriage returns and format characters as they are.
func TestConvertKeepsBytes(t *testing.T) {
	in := strings.ReplaceAll(strings.Replace(limitPool, "# name", "# \u200d\u202e", 1), "\n", "\r\n")
	stdout, stderr, code := runJoist(t, in, nil, "convert", "-f", "-")
	if want := strings.Replace(in, "limit:", "limits:", 1); stdout != want || code != cli.ExitChanges {
		t.Errorf("code %d, got %q\n%s", code, stdout, stderr)
	}
}

// TestConvertValuesFile writes the values of ConfigMaps into a file, and fills in variables.
func TestConvertValuesFile(t *testing.T) {
	dir := t.TempDir()
	settings, values := filepath.Join(dir, "settings.yaml"), filepath.Join(dir, "values.yaml")
	writeTo(t, settings, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: karpenter-global-settings}\ndata:\n  aws.clusterName: ${CLUSTER_NAME}\n", 0o644)
	stdout, stderr, code := runJoist(t, "", []string{"CLUSTER_NAME=env"}, "convert", "-f", settings, "--expand", "--var", "CLUSTER_NAME=prod", "--values", values)
	if code != cli.ExitChanges || !strings.Contains(stdout, "#     clusterName: prod") || readFrom(t, values) != "settings:\n  clusterName: prod\n" {
		t.Errorf("code %d, values %q\n%s%s", code, readFrom(t, values), stdout, stderr)
	}
}

// TestConvertSetValuesFile writes the values of --set, with those of ConfigMaps, into a file, so that kubectl can apply what is
// printed.
func TestConvertSetValuesFile(t *testing.T) {
	dir := t.TempDir()
	template, settings, values := filepath.Join(dir, "template.yaml"), filepath.Join(dir, "settings.yaml"), filepath.Join(dir, "values.yaml")
	writeTo(t, template, "apiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {name: a}\nspec:\n  subnetSelector: {a: b}\n  securityGroupSelector: {a: b}\n", 0o644)
	writeTo(t, settings, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: karpenter-global-settings}\ndata: {aws.clusterName: prod, batchIdleDuration: 2s}\n", 0o644)
	stdout, stderr, code := runJoist(t, "", nil, "convert", "-f", template, "-f", settings, "--set", "settings.aws.clusterName=test", "--set", "settings.aws.defaultInstanceProfile=p", "--values", values)
	if code != cli.ExitChanges || !strings.Contains(stdout, "instanceProfile: p") || strings.Contains(stdout, "clusterName: test") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	if got, want := readFrom(t, values), "settings:\n  batchIdleDuration: 2s\n  clusterName: test\n"; got != want {
		t.Errorf("the values are %q, want %q", got, want)
	}
}

// TestConvertRejectsLargeFiles does not read a file above the limit.
func TestConvertRejectsLargeFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large.yaml")
	writeTo(t, file, "", 0o644)
	if err := os.Truncate(file, manifest.FileMax+1); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := runJoist(t, "", nil, "convert", "-f", file)
	if code != cli.ExitError || !strings.Contains(stderr, "large.yaml: it has more than 32 MiB") || !strings.Contains(stderr, "split it") {
		t.Errorf("code %d\n%s", code, stderr)
	}
	if _, stderr, code = runJoist(t, strings.Repeat("#", manifest.FileMax+1), nil, "lint", "-f", "-"); code != cli.ExitError || !strings.Contains(stderr, "more than 32 MiB") {
		t.Errorf("stdin: code %d\n%s", code, stderr)
	}
}

func writeTo(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func readFrom(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
