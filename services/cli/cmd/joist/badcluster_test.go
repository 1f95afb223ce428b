package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

var update = flag.Bool("update", false, "write the golden files")

// clusterVerbs are the command lines that read a Kubernetes cluster. Without its prices and AWS they need nothing else.
var clusterVerbs = []string{
	"report", "plan", "consolidate", "simulate --remove node/a",
	"explain node/a", "explain pod/a", "doctor --cluster prod", "migrate --check --cluster prod",
}

// answers are the API servers of the tests, by their faults.
var answers = map[string]http.HandlerFunc{
	"credentials that have expired": func(w http.ResponseWriter, _ *http.Request) { writeStatus(w, http.StatusUnauthorized, "Unauthorized") },
	"a page of a proxy": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>Log in to the proxy"))
	},
	"a load balancer without a server": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusServiceUnavailable)
	},
	"no permission at all": func(w http.ResponseWriter, r *http.Request) {
		writeStatus(w, http.StatusForbidden, "Forbidden")
	},
	"no CRD of Karpenter": func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "karpenter") {
			http.NotFound(w, r)
			return
		}
		writeList(w, r)
	},
}

// writeStatus writes the error of an API server.
func writeStatus(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": strings.ToLower(reason), "code": code})
}

// writeList writes an empty list of the kind in the path.
func writeList(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	for _, kind := range cluster.Kinds {
		if parts[len(parts)-1] == kind.Resource {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": kind.Kind + "List", "apiVersion": kind.APIVersion(), "items": []any{}})
			return
		}
	}
	http.NotFound(w, r)
}

// writeKubeconfig writes a kubeconfig with the context prod, and returns its name.
func writeKubeconfig(t *testing.T, server, user string) string {
	t.Helper()
	return writeTestFile(t, "config", fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"prod","contexts":[{"name":"prod","context":{"cluster":"c","user":"u"}}],`+
		`"clusters":[{"name":"c","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":%s}]}`, server, user))
}

func writeTestFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const token = `{"token":"secret"}`

// badCluster is a cluster that cannot be read.
type badCluster struct {
	name, kubeconfig, context string
}

// badClusters returns the clusters and kubeconfigs of TestBadClusters.
func badClusters(t *testing.T) []badCluster {
	t.Helper()
	serve := func(answer http.HandlerFunc) string {
		server := httptest.NewTLSServer(answer)
		t.Cleanup(server.Close)
		return server.URL
	}
	good := serve(writeList)
	closed := httptest.NewServer(nil)
	closed.Close()
	out := []badCluster{
		{name: "no kubeconfig", kubeconfig: filepath.Join(t.TempDir(), "none")},
		{name: "an empty kubeconfig", kubeconfig: writeTestFile(t, "config", "")},
		{name: "half a kubeconfig", kubeconfig: writeTestFile(t, "config", "apiVersion: v1\nkind: Config\nclusters: [{name: c, clus")},
		{name: "a binary kubeconfig", kubeconfig: writeTestFile(t, "config", "\x7fELF\x00\xff")},
		{name: "a directory as kubeconfig", kubeconfig: t.TempDir()},
		{name: "a context that does not exist", kubeconfig: writeKubeconfig(t, good, token), context: "staging"},
		{name: "an exec plugin that is not installed", kubeconfig: writeKubeconfig(t, good, `{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"aws-missing","args":["eks","get-token"],"interactiveMode":"Never"}}`)},
		{name: "an exec plugin that fails", kubeconfig: writeKubeconfig(t, good, `{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"false","args":["eks","get-token"],"interactiveMode":"Never"}}`)},
		{name: "a server that does not listen", kubeconfig: writeKubeconfig(t, closed.URL, token)},
	}
	for _, name := range []string{"credentials that have expired", "a page of a proxy", "a load balancer without a server", "no permission at all", "no CRD of Karpenter"} {
		out = append(out, badCluster{name: name, kubeconfig: writeKubeconfig(t, serve(answers[name]), token)})
	}
	return out
}

// runOn runs a command on a cluster without AWS credentials, as main does, and returns what it prints.
func runOn(t *testing.T, on badCluster, args string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	line := append(strings.Fields(args), "--kubeconfig", on.kubeconfig)
	if on.context != "" {
		line = append(line, "--context", on.context)
	}
	code = cli.Run(t.Context(), cli.Env{
		Args: line, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: time.Now,
		After: func(time.Duration) <-chan time.Time { return nil },
		Kube:  openCluster, Live: openLive,
		AWS: func(context.Context) (aws.Config, error) {
			return aws.Config{}, fault.F("finding AWS credentials", fault.Invalid, "no credentials in the environment, in ~/.aws, or from an instance role").WithHint("set AWS_PROFILE or run aws sso login")
		},
		Run: func(context.Context, string, ...string) (string, error) { return "v99.0.0", nil },
	})
	return out.String(), errs.String(), code
}

// changing matches what differs between runs: the server's port, and the resolver of host names.
var changing = regexp.MustCompile(`127\.0\.0\.1:\d+| on [0-9.]+:53\b`)

// TestBadClusters: each verb that reads a cluster names its fault and a remedy. The golden file has all messages, each
// with the verbs that print it. Of doctor and migrate, which still print the rest, it has only the exit code.
func TestBadClusters(t *testing.T) {
	var all strings.Builder
	for _, on := range badClusters(t) {
		fmt.Fprintf(&all, "# %s\n", on.name)
		verbs, texts := map[string][]string{}, []string(nil)
		for _, args := range clusterVerbs {
			stdout, stderr, code := runOn(t, on, args)
			text := fmt.Sprintf("exit code %d\n", code)
			if code == cli.ExitError && stdout == "" {
				if text = stderr + text; !strings.Contains(stderr, "\nTry: ") {
					t.Errorf("%s, joist %s: no remedy in:\n%s", on.name, args, stderr)
				}
			} else if stdout == "" {
				t.Errorf("%s, joist %s: exit code %d without output: %s", on.name, args, code, stderr)
			}
			text = changing.ReplaceAllString(strings.ReplaceAll(text, on.kubeconfig, "KUBECONFIG"), "")
			if verbs[text] = append(verbs[text], args); len(verbs[text]) == 1 {
				texts = append(texts, text)
			}
		}
		for _, text := range texts {
			fmt.Fprintf(&all, "\n$ joist %s\n%s", strings.Join(verbs[text], "\n$ joist "), text)
		}
		all.WriteString("\n")
	}
	golden := filepath.Join("testdata", "bad-clusters.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (run the test with -update)", err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Error(diff)
	}
}
