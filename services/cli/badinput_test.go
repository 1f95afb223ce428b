package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// badFiles are files that no verb can read, by name.
var badFiles = map[string]string{
	"half.yaml":      "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata:\n  name: general\nspec:\n  template:\n    spec:\n      requirements: [{key: kubernetes.io/arch, opera",
	"binary.yaml":    "\x7fELF\x02\x01\x01\x00\x00\xff\xfe\x00\x80\x1b[2J",
	"empty.yaml":     "",
	"half.json":      `{"apiVersion": "cli.joist.sh/v1", "nodePools": [`,
	"list.json":      `[]`,
	"truncated.zst":  "\x28\xb5\x2f\xfd\x04",
	"text/notes.txt": "no manifest",
}

// fileFlags are the verbs' flags that read files, with the rest of their command line.
var fileFlags = []struct{ verb, flag, rest string }{
	{"plan", "-f", "--region us-east-1"},
	{"budgets", "-f", ""},
	{"simulate --scenario " + tiny, "--pool-change", ""},
	{"plan", "--scenario", ""},
	{"consolidate", "--scenario", ""},
	{"explain node/node-1", "--snapshot", ""},
	{"simulate --remove node/node-1", "--snapshot", ""},
	{"consolidate --snapshot testdata/snapshot-empty.json", "--catalogue", ""},
	{"report", "--scenario", ""},
	{"report", "--snapshot", ""},
	{"report", "--store", ""},
	{"budgets", "--scenario", ""},
	{"trace pod/web", "--log", ""},
	{"trace pod/web", "--otlp", ""},
	{"explain node/node-1 --store testdata", "--log", ""},
}

// TestBadFiles: each verb names a file that it cannot read, and a remedy. The golden file has all
// messages, for review.
func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range badFiles {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var all strings.Builder
	for _, f := range fileFlags {
		for _, name := range []string{"half.yaml", "binary.yaml", "empty.yaml", "half.json", "list.json", "truncated.zst", "text", "none.yaml"} {
			args := append(strings.Fields(f.verb), f.flag, filepath.Join(dir, name))
			stdout, stderr, code := runJoist(t, "", nil, append(args, strings.Fields(f.rest)...)...)
			stderr = strings.ReplaceAll(stderr, dir+string(filepath.Separator), "")
			if code != cli.ExitError || stdout != "" || !strings.Contains(stderr, "\nTry: ") {
				t.Errorf("joist %s %s %s: exit code %d, stdout %q, stderr:\n%s", f.verb, f.flag, name, code, stdout, stderr)
			}
			fmt.Fprintf(&all, "$ joist %s %s %s\n%s\n", f.verb, f.flag, name, stderr)
		}
	}
	compareGolden(t, "bad-files", all.String())
}

// TestHugeManifest: a manifest of 100 MB is rejected without being held in memory several times, in
// a file and on stdin.
func TestHugeManifest(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 100 MB")
	}
	name := filepath.Join(t.TempDir(), "huge.yaml")
	if err := os.WriteFile(name, bytes.Repeat([]byte("# a comment in a manifest of a generator\n"), 2_000_000), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, file string
		allocated  uint64 // MiB
	}{{"in a file", name, 20}, {"on stdin", "-", 250}} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = in.Close() }()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var errs bytes.Buffer
			code := cli.Run(t.Context(), cli.Env{Args: []string{"plan", "-f", tt.file, "--region", "us-east-1"}, Stdin: in, Stdout: &errs, Stderr: &errs, Now: time.Now})
			runtime.ReadMemStats(&after)
			// Of stdin io.ReadAll reads 32 MiB, and allocates about five times as much.
			if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; code != cli.ExitError || !strings.Contains(errs.String(), "it has more than 32 MiB\nTry: split") || allocated > tt.allocated {
				t.Errorf("exit code %d, %d MiB allocated: %s", code, allocated, errs.String())
			}
		})
	}
}

// TestOddFiles: Windows line ends and a byte order mark change nothing, a file that is given twice is read once, and of two
// objects with one name the last one counts, with a warning.
func TestOddFiles(t *testing.T) {
	pool, err := os.ReadFile("testdata/budgets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	windows := writeFile(t, "pool.yaml", []byte("\ufeff"+strings.ReplaceAll(string(pool), "\n", "\r\n")))
	other := writeFile(t, "other.yaml", pool)
	for _, verb := range []string{"budgets", "plan --region eu-west-1", "simulate --scenario " + tiny + " --pool-change"} {
		args, flag := strings.Fields(verb), "-f"
		if args[0] == "simulate" {
			args, flag = args[:3], "--pool-change"
		}
		want, wantErr, wantCode := runJoist(t, "", nil, append(args, flag, "testdata/budgets.yaml")...)
		for name, files := range map[string][]string{
			"Windows": {flag, windows}, "twice": {flag, "testdata/budgets.yaml", flag, "./testdata/budgets.yaml"}, "stdin twice": {flag, "-", flag, "-"},
		} {
			got, stderr, code := runJoist(t, string(pool), nil, append(args, files...)...)
			stderr = strings.NewReplacer(" -:", " testdata/budgets.yaml:", windows, "testdata/budgets.yaml").Replace(stderr)
			if got != want || stderr != wantErr || code != wantCode || code == cli.ExitError {
				t.Errorf("%s, %s: exit code %d, want %d\n%s%s", verb, name, code, wantCode, got, stderr)
			}
		}
	}
	want, _, _ := runJoist(t, "", nil, "budgets", "-f", "testdata/budgets.yaml")
	got, stderr, _ := runJoist(t, "", nil, "budgets", "-f", other, "-f", "testdata/budgets.yaml")
	if got != want || !strings.Contains(stderr, "is in the files more than once: using the last one") {
		t.Errorf("two objects with one name: %s\n%s", stderr, got)
	}
}

// TestConvertOddFiles: convert and lint name a file that they cannot read, and never succeed with it.
func TestConvertOddFiles(t *testing.T) {
	for _, name := range []string{"half.yaml", "binary.yaml", "half.json"} {
		file := writeFile(t, name, []byte(badFiles[name]))
		for _, verb := range []string{"convert", "lint"} {
			stdout, stderr, code := runJoist(t, "", nil, verb, "-f", file)
			if code == cli.ExitNothing || !strings.Contains(stdout+stderr, file) {
				t.Errorf("joist %s -f %s: exit code %d:\n%s%s", verb, name, code, stdout, stderr)
			}
		}
	}
}

// TestBadAccess: each verb that reads AWS or Kubernetes reports expired credentials or a kubeconfig
// that it cannot read, with a remedy.
func TestBadAccess(t *testing.T) {
	expired := func(context.Context) (aws.Config, error) {
		return aws.Config{}, fault.E("finding AWS credentials", fault.Invalid, errors.New("the SSO session has expired or is invalid")).WithHint("aws sso login")
	}
	unreadable := func(kubeconfig, _ string) (func(context.Context, string) ([]byte, error), error) {
		return nil, fault.E("reading the kubeconfig", fault.Invalid, fmt.Errorf("open %s: permission denied", kubeconfig)).WithHint("--kubeconfig FILE")
	}
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"queues --cluster prod", []string{"finding AWS credentials: the SSO session has expired", "Try: aws sso login"}},
		{"dead list --cluster prod", []string{"finding AWS credentials: the SSO session has expired", "Try: aws sso login"}},
		{"dead show 1 --cluster prod", []string{"finding AWS credentials: the SSO session has expired", "Try: aws sso login"}},
		{"replay --cluster prod --queue planner", []string{"finding AWS credentials: the SSO session has expired", "Try: aws sso login"}},
		{"replay --cluster prod --archive --rule inbox --from 2026-11-19T00:00:00Z --to 2026-11-19T01:00:00Z", []string{"finding AWS credentials", "Try: aws sso login"}},
		{"doctor --cluster prod --kubeconfig secret", []string{"the SSO session has expired", "open secret: permission denied", "aws sso login", "--kubeconfig FILE"}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := cli.Run(t.Context(), cli.Env{
				Args: strings.Fields(tt.args), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, AWS: expired, Kube: unreadable,
				Now: func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) },
			})
			if code != cli.ExitError || out.Len() > 0 {
				t.Errorf("exit code %d, stdout %q", code, out.String())
			}
			for _, want := range tt.want {
				if !strings.Contains(errs.String(), want) {
					t.Errorf("stderr does not have %q:\n%s", want, errs.String())
				}
			}
		})
	}
}
