package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// migrationCluster answers paths of the API server with files of a folder, named like the last element
// of the path. Paths in denied are forbidden.
type migrationCluster struct {
	folder string
	denied []string
	// onRead is called before each read; nil for nothing.
	onRead func(ctx context.Context, path string)
}

func (c migrationCluster) read(ctx context.Context, path string) ([]byte, error) {
	if c.onRead != nil {
		c.onRead(ctx, path)
	}
	path, query, _ := strings.Cut(path, "?")
	for _, one := range c.denied {
		if strings.HasSuffix(path, one) {
			return nil, fault.F("reading "+path, fault.Denied, "forbidden")
		}
	}
	name := path[strings.LastIndex(path, "/")+1:]
	if strings.Contains(query, "karpenter") && name == "deployments" {
		name = "karpenter"
	}
	text, err := os.ReadFile(filepath.Join(c.folder, name+".json"))
	if os.IsNotExist(err) {
		return nil, fault.F("reading "+path, fault.Missing, "not found")
	}
	return text, err
}

func (c migrationCluster) run(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = cli.Run(context.Background(), cli.Env{
		Args: append([]string{"migrate"}, args...), Stdout: &out, Stderr: &errs, After: hideProgress,
		Now: func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) },
		AWS: func(context.Context) (aws.Config, error) {
			return aws.Config{}, fault.F("loading credentials", fault.Invalid, "no credentials").WithHint("aws configure")
		},
		Kube: func(kubeconfig, _ string) (func(ctx context.Context, path string) ([]byte, error), error) {
			if kubeconfig == "broken" {
				return nil, fault.F("reading the kubeconfig", fault.Invalid, "yaml: line 3: could not find expected ':'").WithHint("--kubeconfig FILE")
			}
			return c.read, nil
		},
	})
	return out.String(), errs.String(), code
}

// TestMigrate compares the output of joist migrate with golden files. Its JSON is a contract.
func TestMigrate(t *testing.T) {
	all := migrationCluster{folder: "testdata/migrate"}
	forbidden := all
	forbidden.denied = []string{"customresourcedefinitions", "validatingwebhookconfigurations", "deployments", "nodepools", "kube-root-ca.crt"}
	unreachable := all
	unreachable.denied = nil
	unreachable.folder = "testdata/none"
	for _, tt := range []struct {
		name string
		from migrationCluster
		args []string
		code int
	}{
		{"migrate-help", all, []string{"--help"}, cli.ExitNothing},
		{"migrate", all, []string{"--check", "--cluster", "prod"}, cli.ExitChanges},
		{"migrate-json", all, []string{"--check", "--cluster", "prod", "-o", "json"}, cli.ExitChanges},
		{"migrate-forbidden", forbidden, []string{"--check", "--cluster", "prod"}, cli.ExitChanges},
		{"migrate-empty", unreachable, []string{"--check", "--cluster", "prod"}, cli.ExitChanges},
		{"migrate-no-check", all, []string{"--cluster", "prod"}, cli.ExitError},
		{"migrate-timeout", all, []string{"--check", "--cluster", "prod", "--timeout", "0s"}, cli.ExitError},
		{"migrate-no-cluster", all, []string{"--check"}, cli.ExitError},
		{"migrate-kubeconfig", all, []string{"--check", "--cluster", "prod", "--kubeconfig", "broken"}, cli.ExitError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := tt.from.run(tt.args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			compareGolden(t, tt.name, fmt.Sprintf("$ joist migrate %s\n%s\nstderr:\n%s\nexit code %d\n", strings.Join(tt.args, " "), stdout, stderr, code))
		})
	}
}

// TestMigrateTimeout: --timeout limits the reads of Kubernetes, except for the first, which shows whether the API
// server answers.
func TestMigrateTimeout(t *testing.T) {
	var mu sync.Mutex
	left := map[string]time.Duration{}
	from := migrationCluster{folder: "testdata/migrate", onRead: func(ctx context.Context, path string) {
		mu.Lock()
		defer mu.Unlock()
		if at, limited := ctx.Deadline(); limited {
			path, _, _ = strings.Cut(path, "?")
			left[path[strings.LastIndex(path, "/")+1:]] = time.Until(at)
		}
	}}
	from.run("--check", "--cluster", "prod", "--timeout", "10m")
	for _, resource := range []string{"nodes", "nodeclaims", "nodepools", "deployments", "leases"} {
		if left[resource] < 9*time.Minute || left[resource] > 10*time.Minute {
			t.Errorf("%s: %s", resource, left[resource])
		}
	}
	if left["version"] > 5*time.Second {
		t.Errorf("the first read: %s", left["version"])
	}
}
