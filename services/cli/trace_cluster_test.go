package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/services/cli/internal/trace"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// recordedServer serves the objects and events of a recorded run like an API server.
type recordedServer struct {
	*embedded.EmbeddedCluster
	// denied are parts of paths that the caller may not read.
	denied []string
}

func (s recordedServer) read(ctx context.Context, path string) ([]byte, error) {
	if slices.ContainsFunc(s.denied, func(part string) bool { return strings.Contains(path, part) }) {
		return nil, fault.F("reading "+path, fault.Denied, "forbidden")
	}
	at, err := url.Parse(path)
	if err != nil {
		return nil, err
	}
	client, words := s.Kube.ClientFor("user"), strings.Split(strings.Trim(at.Path, "/"), "/")
	switch {
	case words[len(words)-1] == "events":
		return json.Marshal(map[string]any{"items": s.listEvents(at.Query().Get("fieldSelector"))})
	case words[len(words)-1] == "nodeclaims":
		list, err := client.List(ctx, cluster.NodeClaims, "")
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]any{"items": list})
	case words[len(words)-2] == "nodes":
		return s.get(ctx, cluster.Nodes, cluster.Key{Name: words[len(words)-1]})
	case words[len(words)-2] == "pods":
		return s.get(ctx, cluster.Pods, cluster.Key{Namespace: words[3], Name: words[len(words)-1]})
	}
	return nil, fault.F("reading "+path, fault.Missing, "not found")
}

func (s recordedServer) get(ctx context.Context, kind cluster.Kind, key cluster.Key) ([]byte, error) {
	object, err := s.Kube.ClientFor("user").Get(ctx, kind, key)
	if err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

func (s recordedServer) listEvents(selector string) (out []corev1.Event) {
	for _, e := range s.Kube.Events() {
		if fmt.Sprintf("involvedObject.kind=%s,involvedObject.name=%s", e.Kind.Kind, e.About.GetName()) == selector {
			out = append(out, corev1.Event{
				Reason: e.Reason, Message: e.Message, Type: e.Type, Count: 1, FirstTimestamp: metav1.NewTime(e.Now), ReportingController: "joist",
				InvolvedObject: corev1.ObjectReference{Kind: e.Kind.Kind, Namespace: e.About.GetNamespace(), Name: e.About.GetName()},
			})
		}
	}
	return out
}

// run runs a command with the API server, at the end of the recorded run.
func (s recordedServer) run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), cli.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: s.Now, After: hideProgress,
		Kube: func(string, string) (func(context.Context, string) ([]byte, error), error) { return s.read, nil },
	})
	return out.String(), errs.String(), code
}

// findRunningPod returns a pod whose node has a NodeClaim.
func (s recordedServer) findRunningPod(t *testing.T) (pod, node, claim string) {
	t.Helper()
	pods, err := s.Kube.ClientFor("user").List(t.Context(), cluster.Pods, "default")
	if err != nil {
		t.Fatal(err)
	}
	claims := s.listClaims(t)
	for _, p := range cluster.CastAll[*corev1.Pod](pods) {
		for _, c := range claims {
			var status struct{ Status struct{ NodeName string } }
			text, err := json.Marshal(c)
			if err == nil {
				err = json.Unmarshal(text, &status)
			}
			if err != nil {
				t.Fatal(err)
			}
			if node := status.Status.NodeName; node != "" && node == p.Spec.NodeName {
				return p.Name, node, c.GetName()
			}
		}
	}
	t.Fatal("no pod runs on a node with a NodeClaim")
	return "", "", ""
}

// TestTraceFromCluster traces a running pod without --store: the steps of Kubernetes, the trace of its NodeClaim,
// and the missing messages. With an audit log it has the messages too.
func TestTraceFromCluster(t *testing.T) {
	s := recordedServer{EmbeddedCluster: recordLaunches(t, embedded.Options{})}
	pod, node, claim := s.findRunningPod(t)
	for name, args := range map[string][]string{
		"trace-cluster-pod": {"pod", pod}, "trace-cluster-absent": {"pod", "absent", "-n", "shop"}, "trace-cluster-json": {"nodeclaim", claim, "-o", "json"},
	} {
		stdout, stderr, code := s.run(t, append([]string{"trace"}, args...)...)
		compareGolden(t, name, fmt.Sprintf("$ joist trace %s\n%s\nstderr:\n%s\nexit code %d\n", strings.Join(args, " "), stdout, stderr, code))
	}
	stdout, stderr, code := s.run(t, "trace", "nodeclaim", claim, "-o", "json")
	if code != cli.ExitNothing {
		t.Fatal(stderr)
	}
	got := parseJSON[trace.Trace](t, stdout)
	if len(got.Traces) != 1 {
		t.Fatalf("traces %v", got.Traces)
	}
	line := fmt.Sprintf(`{"time":%q,"msg":"handled","service":"launcher","event.type":"launch.requested.v1","event.id":"m1","subject":"intent/1","correlation":%q,"disposition":"delete"}`, s.Now().UTC().Format("2006-01-02T15:04:05Z"), got.Traces[0])
	log := writeFile(t, "services.jsonl", []byte(line+"\n"))
	stdout, stderr, code = s.run(t, "trace", "node", node, "--log", log, "-o", "json")
	if code != cli.ExitNothing {
		t.Fatal(stderr)
	}
	combined := parseJSON[trace.Trace](t, stdout)
	hasStep := func(isWanted func(trace.TraceStep) bool) bool { return slices.ContainsFunc(combined.Steps, isWanted) }
	if !hasStep(func(s trace.TraceStep) bool {
		return s.Result == trace.ResultObserved && s.What == "NodeClaim "+claim+" Registered"
	}) {
		t.Errorf("no condition of the NodeClaim: %s", stdout)
	}
	if strings.Contains(strings.Join(combined.Missing, "\n"), "--cluster NAME searches") {
		t.Errorf("logs are missing although they are given: %v", combined.Missing)
	}
}

// TestTraceOfReplacement traces a NodeClaim that consolidation launched: one trace has the decision, the launch and
// the binding.
func TestTraceOfReplacement(t *testing.T) {
	var lines []string
	env := recordLaunches(t, embedded.Options{Log: func(l host.LogLine) {
		n := l.LogFields
		lines = append(lines, fmt.Sprintf(`{"time":%q,"msg":"handled","service":%q,"event.type":%q,"event.id":%q,"subject":%q,"correlation":%q,"disposition":"delete"}`,
			memcluster.Epoch.Format(time.RFC3339), l.Service, n.Type, n.ID, n.Subject, n.Correlation))
	}})
	s, before := recordedServer{EmbeddedCluster: env}, map[string]bool{}
	for _, c := range s.listClaims(t) {
		before[c.GetName()] = true
	}
	scaleDeployment(env, "inflate", 2)
	runFor(t, env, 6*time.Minute)
	replacements := slices.DeleteFunc(s.listClaims(t), func(c cluster.Object) bool { return before[c.GetName()] })
	if len(replacements) == 0 {
		t.Fatal("consolidation has launched no NodeClaim")
	}
	log := writeFile(t, "services.jsonl", []byte(strings.Join(lines, "\n")+"\n"))
	for _, c := range replacements {
		stdout, stderr, code := s.run(t, "trace", "nodeclaim", c.GetName(), "--log", log, "--since", "2025-01-01", "-o", "json")
		if code != cli.ExitNothing {
			t.Fatal(stderr)
		}
		got := parseJSON[trace.Trace](t, stdout)
		of := planning.ReadTrace(c)
		if of == nil {
			t.Fatalf("NodeClaim %s has no trace: %v", c.GetName(), got.Missing)
		}
		for _, typ := range []event.Type{event.DisruptionProposedType, event.LaunchRequestedType, event.LaunchSettledType} {
			if !slices.ContainsFunc(got.Steps, func(step trace.TraceStep) bool {
				return step.Trace == of.Correlation && strings.HasPrefix(step.What, string(typ))
			}) {
				t.Errorf("the trace of %s has no %s: %s", c.GetName(), typ, stdout)
			}
		}
	}
}

func (s recordedServer) listClaims(t *testing.T) []cluster.Object {
	t.Helper()
	claims, err := s.Kube.ClientFor("user").List(t.Context(), cluster.NodeClaims, "")
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

// TestTraceFromUnreadableCluster: what may not be read is listed, and the logs are still searched.
func TestTraceFromUnreadableCluster(t *testing.T) {
	s := recordedServer{EmbeddedCluster: recordRun(t, embedded.Options{}), denied: []string{"nodeclaims", "events"}}
	pod, node, _ := s.findRunningPod(t)
	stdout, stderr, code := s.run(t, "trace", "pod", pod)
	for _, want := range []string{"NodeClaims were not read (", "events of pod/" + pod + " were not read", "Node " + node + " created"} {
		if code != cli.ExitNothing || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, without %q: %s%s", code, want, stdout, stderr)
		}
	}
	s.denied = []string{"/"}
	if _, stderr, code := s.run(t, "trace", "pod", pod); code != cli.ExitError || !strings.Contains(stderr, "forbidden") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	facts := filepath.Join(recordDemo(t), "facts.jsonl")
	const instance = "i-0324fa61562160a2f"
	stdout, stderr, code = s.run(t, "trace", "node", instance, "--log", facts, "--since", "2025-12-31", "--until", demoEnd)
	if code != cli.ExitNothing || !strings.Contains(stdout, "NodeClaims were not read") && !strings.Contains(stdout, "in Kubernetes: ") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}
