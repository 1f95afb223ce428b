package cli

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/spf13/cobra"
)

// complete returns the suggestions of a shell for the last argument, and their directive.
func complete(t *testing.T, env Env, args ...string) (matching []string, directive string) {
	t.Helper()
	var out, errs bytes.Buffer
	env.Args, env.Stdin, env.Stdout, env.Stderr = append([]string{cobra.ShellCompNoDescRequestCmd}, args...), strings.NewReader(""), &out, &errs
	if code := Run(t.Context(), env); code != ExitNothing {
		t.Fatalf("%v: exit code %d: %s", args, code, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	suggestions, written := lines[:len(lines)-1], args[len(args)-1]
	// A shell shows the suggestions that begin with the written text, and files with the extensions.
	return slices.DeleteFunc(suggestions, func(s string) bool { return !strings.HasPrefix(s, written) }), lines[len(lines)-1]
}

// TestCompletion completes values of flags and arguments, from files, from a cluster and from AWS.
func TestCompletion(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/clusters" {
			t.Errorf("unexpected request %s", r.URL)
		}
		_, _ = w.Write([]byte(`{"clusters":["prod","staging"]}`))
	}))
	t.Cleanup(server.Close)
	account := func(context.Context) (aws.Config, error) {
		return aws.Config{Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}, nil
	}
	noAccount := func(context.Context) (aws.Config, error) { return aws.Config{}, errors.New("the token has expired") }
	objects := func(string, string) (func(context.Context, string) ([]byte, error), error) {
		return func(_ context.Context, path string) ([]byte, error) {
			switch path {
			case "/api/v1/nodes?limit=500":
				return []byte(`{"items":[{"metadata":{"name":"ip-10-0-0-2"}},{"metadata":{"name":"ip-10-0-0-1"}}]}`), nil
			case "/apis/karpenter.sh/v1/nodepools?limit=500":
				return []byte(`{"items":[{"metadata":{"name":"general"}}]}`), nil
			}
			return nil, errors.New("forbidden")
		}, nil
	}
	contexts := func(kubeconfig string) []string {
		if kubeconfig != "" {
			return []string{"other"}
		}
		return []string{"kind", "arn:aws:eks:eu-west-1:123456789012:cluster/dev"}
	}
	reachable := Env{AWS: account, Kube: objects, Contexts: contexts}
	const tiny = "testdata/scenario/tiny.json"
	for _, tt := range []struct {
		name string
		env  Env
		args []string
		want []string
	}{
		{"commands", Env{}, []string{"sim"}, []string{"simulate"}},
		{"output formats", Env{}, []string{"queues", "-o", ""}, []string{"table", "wide", "json", "yaml", "name"}},
		{"regions", Env{}, []string{"plan", "--region", "eu-n"}, []string{"eu-north-1"}},
		{"queues", Env{}, []string{"dead", "list", "--queue", "pl"}, []string{"planner"}},
		{"the audit log", Env{}, []string{"replay", "--queue", "au"}, []string{"audit"}},
		{"matches", Env{}, []string{"replay", "--match", "disposition=h"}, []string{"disposition=handle"}},
		{"files of manifests", Env{}, []string{"plan", "-f", ""}, []string{"yaml", "yml", "json"}},
		{"clusters of the account", reachable, []string{"queues", "--cluster", "p"}, []string{"prod"}},
		{"clusters of the kubeconfig", Env{AWS: noAccount, Contexts: contexts}, []string{"queues", "--cluster", ""}, []string{"dev"}},
		{"clusters without AWS and Kubernetes", Env{}, []string{"queues", "--cluster", ""}, []string{}},
		{"contexts", reachable, []string{"doctor", "--context", "k"}, []string{"kind"}},
		{"contexts of a file", reachable, []string{"doctor", "--kubeconfig", "file", "--context", ""}, []string{"other"}},
		{"nodes of a scenario", reachable, []string{"explain", "--scenario", tiny, "node/"}, []string{"node/node-1"}},
		{"nodes of the cluster", reachable, []string{"explain", ""}, []string{"node/ip-10-0-0-1", "node/ip-10-0-0-2"}},
		{"nodes to remove", reachable, []string{"simulate", "--scenario", tiny, "--remove", ""}, []string{"node/node-1"}},
		{"NodePools of the cluster", reachable, []string{"simulate", "--pool-delete", ""}, []string{"general"}},
		{"NodePools of a scenario", reachable, []string{"simulate", "--scenario", tiny, "--pool-delete", ""}, []string{"default"}},
		{"NodePools without a cluster", Env{}, []string{"simulate", "--pool-delete", ""}, []string{}},
		{"a file that does not exist", reachable, []string{"explain", "--snapshot", "none", ""}, []string{}},
		{"no arguments", Env{}, []string{"plan", ""}, []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, directive := complete(t, tt.env, tt.args...); !slices.Equal(got, tt.want) {
				t.Errorf("got %q (%s), want %q", got, directive, tt.want)
			}
		})
	}
}

// TestCompletionDoesNotWait: a cluster that does not answer gives no suggestions after a second.
func TestCompletionDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(string, string) (func(context.Context, string) ([]byte, error), error) {
			return func(ctx context.Context, _ string) ([]byte, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}, nil
		}
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		env := Env{Kube: silent}
		if got, _ := env.completeRemote(env.poolNames)(cmd, nil, ""); len(got) != 0 {
			t.Errorf("got %q", got)
		}
	})
}
