package startup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// wired is a handler that does nothing.
func wired(*Bootstrap) (host.Handler, host.Options) {
	return func(context.Context, queue.Message) error { return nil }, host.Options{}
}

var alone = map[string]string{"CLUSTER_NAME": "prod", "AWS_REGION": "eu-west-1", "JOIST_BUCKET": "b"}

// with returns an environment with more variables.
func with(env map[string]string, more ...string) map[string]string {
	out := maps.Clone(env)
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

// The environment selects the host.
func TestServe(t *testing.T) {
	t.Run("Lambda", func(t *testing.T) {
		p, err := opened(t, with(alone, "AWS_LAMBDA_RUNTIME_API", "x", "JOIST_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/111122223333/q"), planner)
		if err != nil {
			t.Fatal(err)
		}
		served := false
		err = runWorkers(t.Context(), []*Bootstrap{p}, wired, func(_ context.Context, o host.LambdaOptions) error {
			w, err := o.FindWorker(queueARN("q"))
			served = w.Service == "planner" && w.Queue != nil && o.OnRefused != nil && o.AfterInvocation != nil
			for _, other := range []string{queueARN("other"), strings.Replace(queueARN("q"), "eu-west-1", "eu-west-2", 1), strings.Replace(queueARN("q"), "1111", "9999", 1), ""} {
				if _, err := o.FindWorker(other); err == nil {
					t.Errorf("a record of source %q has a worker", other)
				}
			}
			return err
		})
		if err != nil || !served {
			t.Errorf("ran %t: %v", served, err)
		}
	})
	t.Run("Lambda without a queue", func(t *testing.T) {
		p, err := opened(t, with(alone, "AWS_LAMBDA_RUNTIME_API", "x"), planner)
		if err != nil {
			t.Fatal(err)
		}
		err = runWorkers(t.Context(), []*Bootstrap{p}, wired, func(context.Context, host.LambdaOptions) error { return nil })
		if err == nil || !strings.Contains(fault.FindHint(err), "JOIST_QUEUE_URL") {
			t.Errorf("a function without a queue URL runs: %v", err)
		}
	})
	t.Run("neither Lambda nor a queue", func(t *testing.T) {
		p, err := opened(t, alone, planner)
		if err != nil {
			t.Fatal(err)
		}
		err = runWorkers(t.Context(), []*Bootstrap{p}, wired, nil)
		if err == nil || !strings.Contains(err.Error(), "neither AWS_LAMBDA_RUNTIME_API nor JOIST_QUEUE_URL is set") {
			t.Error(err)
		}
	})
}

func queueARN(name string) string { return "arn:aws:sqs:eu-west-1:111122223333:" + name }

// object returns a cluster's entry in the list.
func object(cluster, queueURL string) string {
	return fmt.Sprintf(`{"JOIST_CLUSTER_NAME":%q,"JOIST_QUEUE_URL":%q,"JOIST_DEAD_LETTER_URL":"%s-dead","JOIST_ROLE_ARN":"arn:aws:iam::111122223333:role/%s-joist-planner","JOIST_PREFIX":%q}`,
		cluster, queueURL, queueURL, cluster, cluster)
}

// several opens the Bootstraps of a list of clusters.
func several(t *testing.T, env map[string]string, objects ...string) []*Bootstrap {
	t.Helper()
	set(t, with(env, settings.Clusters, "["+strings.Join(objects, ",")+"]"))
	read, err := settings.ReadClusters(os.LookupEnv, planner.Required...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := openClusters(t.Context(), planner, read)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each message goes to the worker of its queue's cluster; a message of an unknown queue is rejected.
func TestMessagesGoToTheirClustersWorker(t *testing.T) {
	const at = "https://sqs.eu-west-1.amazonaws.com/111122223333/"
	all := several(t, alone, object("prod", at+"prod-joist-planner"), object("staging", "http://127.0.0.1:9324/queue/staging-joist-planner"))
	var handled []string
	c := clusterWorkers{}
	for _, p := range all {
		c = append(c, clusterWorker{Bootstrap: p, worker: p.NewWorker(func(context.Context, queue.Message) error {
			handled = append(handled, p.Cluster.Name)
			return nil
		})})
	}
	for name, want := range map[string]string{"prod-joist-planner": "prod", "staging-joist-planner": "staging"} {
		w, err := c.findWorker(queueARN(name))
		if err != nil {
			t.Fatal(err)
		}
		handled = nil
		if err := w.Handle(t.Context(), queue.Message{}); err != nil || len(handled) != 1 || handled[0] != want {
			t.Errorf("the message of %s is handled for %v", name, handled)
		}
	}
	for _, arn := range []string{queueARN("other-joist-planner"), strings.Replace(queueARN("prod-joist-planner"), "1111", "9999", 1)} {
		if _, err := c.findWorker(arn); err == nil || !strings.Contains(fault.FindHint(err), "JOIST_CLUSTERS") {
			t.Errorf("%s: %v", arn, err)
		}
	}
	if _, err := c.findWorker("prod-joist-planner"); err == nil {
		t.Error("a malformed ARN has a worker")
	}
}

// roles is an STS that rejects the roles of one cluster.
type roles struct {
	mu      sync.Mutex
	refuses string
	taken   []string
	// keys are the access keys of the other calls, by service.
	keys []string
}

func (r *roles) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	form, _ := url.ParseQuery(string(body))
	r.mu.Lock()
	defer r.mu.Unlock()
	role := form.Get("RoleArn")
	switch {
	case form.Get("Action") != "AssumeRole":
		_, key, _ := strings.Cut(request.Header.Get("Authorization"), "Credential=")
		r.keys = append(r.keys, key[:strings.Index(key, "/")]+" "+request.Header.Get("X-Amz-Target"))
		fmt.Fprint(w, `{}`)
	case r.refuses != "" && strings.Contains(role, r.refuses):
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>`)
	default:
		r.taken = append(r.taken, role[strings.LastIndex(role, "/")+1:]+" as "+form.Get("RoleSessionName"))
		fmt.Fprintf(w, `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>AKIDOF%s</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
			strings.ToUpper(role[strings.LastIndex(role, "/")+1:]))
	}
}

// Calls for a cluster use its role, which is assumed once; calls to its queue use the process's credentials. A role
// that cannot be assumed stops neither the queue nor other clusters.
func TestRoles(t *testing.T) {
	api := &roles{refuses: "staging"}
	server := httptest.NewServer(api)
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDOFPROCESS")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	all := several(t, alone, object("prod", server.URL+"/111122223333/prod-joist-planner"), object("staging", server.URL+"/111122223333/staging-joist-planner"))
	for _, p := range all {
		p.AWS.RetryMaxAttempts, p.process.aws.RetryMaxAttempts = 1, 1
	}
	message := queue.Outgoing{Type: "test.v1", Body: []byte("x")}
	for range 2 {
		_ = all[0].NewWorker(nil).Dead.Send(t.Context(), message)
	}
	_ = all[0].NewWorker(nil).Queue.Hide(t.Context(), "r", time.Second)
	err := all[1].NewWorker(nil).Dead.Send(t.Context(), message)
	if !fault.Is(err, fault.Retry) || !strings.Contains(err.Error(), "taking the role arn:aws:iam::111122223333:role/staging-joist-planner") || !strings.Contains(fault.FindHint(err), "sts:AssumeRole") {
		t.Errorf("%v (%s)", err, fault.KindOf(err))
	}
	if err := all[1].NewWorker(nil).Queue.Hide(t.Context(), "r", time.Second); err != nil {
		t.Errorf("returning a message of a cluster whose role cannot be assumed: %v", err)
	}
	if got := strings.Join(api.taken, ", "); got != "prod-joist-planner as planner@prod" {
		t.Errorf("assumed roles: %s", got)
	}
	want := "AKIDOFPROD-JOIST-PLANNER AmazonSQS.SendMessageBatch, AKIDOFPROD-JOIST-PLANNER AmazonSQS.SendMessageBatch, " +
		"AKIDOFPROCESS AmazonSQS.ChangeMessageVisibility, AKIDOFPROCESS AmazonSQS.ChangeMessageVisibility"
	if got := strings.Join(api.keys, ", "); got != want {
		t.Errorf("credentials of the calls:\n%s, want\n%s", got, want)
	}
}

// With several clusters, the heartbeat error names the cluster whose poller is stuck.
func TestHeartbeatNamesCluster(t *testing.T) {
	one, err := opened(t, alone, planner)
	if err != nil {
		t.Fatal(err)
	}
	two := several(t, alone, object("prod", "http://127.0.0.1:1/1/a"), object("staging", "http://127.0.0.1:1/1/b"))
	for want, p := range map[string]*Bootstrap{"the poller": one, "the poller of prod": two[0], "the poller of staging": two[1]} {
		if _, pulse := p.newPollWithHeartbeat(host.Worker{}, host.Options{}); pulse.Name != want {
			t.Errorf("heartbeat %q, want %q", pulse.Name, want)
		}
	}
}

// A queue that cannot be polled is reported and polled again, and the process keeps running for the other clusters.
func TestFailedPollIsRepeated(t *testing.T) {
	p := several(t, alone, object("prod", "http://127.0.0.1:1/1/a"), object("staging", "http://127.0.0.1:1/1/b"))[0]
	synctest.Test(t, func(t *testing.T) {
		told, beats, polls := 0, 0, 0
		p.ErrorLog = &host.RateLimitedLog{Write: func(error, int) { told++ }}
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		err := clusterWorker{Bootstrap: p}.pollWithRetries(func(context.Context) error {
			polls++
			return errors.New("the queue does not exist")
		}, func() { beats++ })(ctx)
		if err != nil || polls != 3 || beats != 3 || told == 0 {
			t.Errorf("%d polls, %d heartbeats, %d reported errors: %v", polls, beats, told, err)
		}
	})
}
