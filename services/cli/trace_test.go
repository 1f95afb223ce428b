package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/services/cli/internal/trace"
)

// recordDemo records the demo in a directory.
func recordDemo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, stderr, code := runJoist(t, "", nil, "demo", "--record", dir); code != cli.ExitNothing {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	return dir
}

const demoEnd = "2026-01-01T00:15:00Z"

// TestTraceGolden compares traces of the demo with golden files. The JSON is a contract.
func TestTraceGolden(t *testing.T) {
	dir := recordDemo(t)
	facts, lines := filepath.Join(dir, "facts.jsonl"), filepath.Join(dir, "services.jsonl")
	for name, args := range map[string][]string{
		"trace-node":     {"node/ip-10-0-0-9.ap-northeast-2.compute.internal", "--store", dir, "--log", facts, "--log", lines},
		"trace-pod":      {"pod", "inflate-qzpbpgwhv-dkh6d", "--store", dir, "--log", facts, "--log", lines, "--until", "2026-01-01T00:01:00Z"},
		"trace-instance": {"i-0324fa61562160a2f", "--log", facts},
		"trace-json":     {"i-0324fa61562160a2f", "--log", facts, "--log", lines, "-o", "json"},
		"trace-none":     {"pod", "absent", "--log", facts},
		"trace-no-log":   {"pod", "absent", "--log", "none.jsonl"},
		"trace-nothing":  {},
		"trace-help":     {"--help"},
	} {
		t.Run(name, func(t *testing.T) {
			args = append([]string{"trace"}, args...)
			if len(args) > 2 && !strings.Contains(strings.Join(args, " "), "--until") {
				args = append(args, "--until", demoEnd)
			}
			stdout, stderr, code := runJoist(t, "", nil, args...)
			compareGolden(t, name, strings.ReplaceAll(fmt.Sprintf("$ joist %s\n%s\nstderr:\n%s\nexit code %d\n", strings.Join(args, " "), stdout, stderr, code), dir, "DIR"))
		})
	}
}

// fakeLogs is CloudWatch Logs with the logs of a run, in pages of ten entries.
type fakeLogs struct {
	t      *testing.T
	groups map[string][]string
	calls  int
}

func (f *fakeLogs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		LogGroupName, FilterPattern, NextToken string
		StartTime, EndTime                     int64
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &ask) != nil || r.Header.Get("X-Amz-Target") != "Logs_20140328.FilterLogEvents" || ask.StartTime == 0 || ask.EndTime <= ask.StartTime {
		f.t.Errorf("%s: %s, %v", r.Header.Get("X-Amz-Target"), body, err)
	}
	f.calls++
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	lines, known := f.groups[ask.LogGroupName]
	if !known {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"ResourceNotFoundException","message":"The specified log group does not exist."}`)
		return
	}
	terms := regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(ask.FilterPattern, -1)
	from, _ := strconv.Atoi(ask.NextToken)
	out := struct {
		Events    []map[string]any `json:"events"`
		NextToken string           `json:"nextToken,omitempty"`
	}{Events: []map[string]any{}}
	for i := from; i < len(lines); i++ {
		if i == from+10 {
			out.NextToken = strconv.Itoa(i)
			break
		}
		for _, term := range terms {
			if strings.Contains(lines[i], term[1]) {
				out.Events = append(out.Events, map[string]any{"message": lines[i]})
				break
			}
		}
	}
	_ = json.NewEncoder(w).Encode(out)
}

// TestTraceFromCloudWatch searches the audit log and the logs of the functions, of which one does not
// exist, and finds the steps that the files have.
func TestTraceFromCloudWatch(t *testing.T) {
	dir := recordDemo(t)
	logs := &fakeLogs{t: t, groups: map[string][]string{}}
	facts, err := os.ReadFile(filepath.Join(dir, "facts.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(filepath.Join(dir, "services.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	logs.groups["/joist/demo/facts"] = strings.Split(strings.TrimSpace(string(facts)), "\n")
	for line := range strings.SplitSeq(strings.TrimSpace(string(lines)), "\n") {
		for _, service := range []string{"planner", "disruption", "launcher", "catalog"} {
			if strings.Contains(line, `"service":"`+service+`"`) {
				logs.groups["/aws/lambda/demo-joist-"+service] = append(logs.groups["/aws/lambda/demo-joist-"+service], line)
			}
		}
	}
	server := httptest.NewServer(logs)
	t.Cleanup(server.Close)
	run := func(args ...string) (string, string, int) {
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), cli.Env{
			Args: append([]string{"trace", "--cluster", "demo", "--until", demoEnd, "-o", "json"}, args...), Stdout: &out, Stderr: &errs, After: hideProgress, Now: func() time.Time { return time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC) },
			AWS: func(context.Context) (aws.Config, error) {
				return aws.Config{Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}, nil
			},
		})
		return out.String(), errs.String(), code
	}
	stdout, stderr, code := run("node", "default-33ce3fa225", "--store", dir)
	if code != cli.ExitNothing {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	got := parseJSON[trace.Trace](t, stdout)
	services := map[string]int{}
	for _, s := range got.Steps {
		services[s.Service]++
	}
	if len(got.Traces) != 3 || services["planner"] != 1 || services["launcher"] < 3 || services["disruption"] != 2 || services[""] == 0 {
		t.Errorf("%d traces, steps of %v", len(got.Traces), services)
	}
	missing := strings.Join(got.Missing, "\n")
	for _, want := range []string{"/aws/lambda/demo-joist-interruption", "watcher and lifecycle run in the cluster"} {
		if !strings.Contains(missing, want) {
			t.Errorf("missing parts lack %q:\n%s", want, missing)
		}
	}
	delete(logs.groups, "/joist/demo/facts")
	if _, stderr, code := run("node", "x"); code != cli.ExitError || !strings.Contains(stderr, "log group /joist/demo/facts") || !strings.Contains(stderr, "Try: check --cluster") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestTraceEscapesHostileText: control characters of a log never reach the terminal.
func TestTraceEscapesHostileText(t *testing.T) {
	line := `{"time":"2026-01-02T03:04:05Z","msg":"handled","service":"planner\u001b[31m","event.type":"plan.made.v1","event.id":"m1","subject":"batch/1\u202e","correlation":"c1","disposition":"dlq","error":"\u001b]0;pwned\u0007\nnew row"}`
	for _, format := range []string{"table", "json"} {
		stdout, stderr, code := runJoist(t, line, nil, "trace", "m1", "--log", "-", "--since", "2026-01-01", "-o", format)
		if code != cli.ExitNothing || strings.ContainsAny(stdout, "\x1b\x07\u202e") || !strings.Contains(stdout, `\u001b`) {
			t.Errorf("exit code %d: %q %s", code, stdout, stderr)
		}
		if format == "table" && strings.Contains(stdout, "\nnew row") {
			t.Errorf("an error added a row: %s", stdout)
		}
	}
}
