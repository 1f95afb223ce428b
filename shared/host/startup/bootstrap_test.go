package startup

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go/logging"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/build"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

func TestURLOf(t *testing.T) {
	for _, c := range []struct{ name, arn, want string }{
		{"a queue", "arn:aws:sqs:eu-west-1:111122223333:prod-planner", "https://sqs.eu-west-1.amazonaws.com/111122223333/prod-planner"},
		{"in China", "arn:aws-cn:sqs:cn-north-1:111122223333:q", "https://sqs.cn-north-1.amazonaws.com.cn/111122223333/q"},
		{"a topic", "arn:aws:sns:eu-west-1:111122223333:q", ""},
		{"nothing", "", ""},
		{"too short", "arn:aws:sqs:eu-west-1:q", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := queueURLFromARN(c.arn)
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestAccountOf(t *testing.T) {
	for url, want := range map[string]string{
		"https://sqs.eu-west-1.amazonaws.com/111122223333/prod-interruption": "111122223333", "http://127.0.0.1:9324/queue/q": "", "": "",
		"https://sqs.eu-west-1.amazonaws.com/11112222333x/q": "",
	} {
		if got := accountFromQueueURL(url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

// opened sets the environment of a test and opens a Bootstrap.
func opened(t *testing.T, env map[string]string, s Service) (*Bootstrap, error) {
	t.Helper()
	set(t, env)
	return Open(t.Context(), s)
}

// set sets the environment of a test.
func set(t *testing.T, env map[string]string) {
	t.Helper()
	for _, v := range settings.Variables {
		for _, name := range append([]string{v.Name}, v.Aliases...) {
			t.Setenv(name, env[name])
		}
	}
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
}

// TestAppID: every request to AWS names the service and its version, unless the operator sets another name. The SDK
// replaces the slash.
func TestAppID(t *testing.T) {
	for name, want := range map[string]string{"": "app/" + strings.Replace(build.UserAgent("joist-planner"), "/", "-", 1), "shop": "app/shop"} {
		var agents []string
		aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			agents = append(agents, r.UserAgent())
			w.WriteHeader(http.StatusForbidden)
		}))
		t.Cleanup(aws.Close)
		for key, value := range map[string]string{"AWS_ENDPOINT_URL": aws.URL, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SDK_UA_APP_ID": name} {
			t.Setenv(key, value)
		}
		p, err := opened(t, map[string]string{"CLUSTER_NAME": "prod", "AWS_REGION": "eu-west-1", "JOIST_BUCKET": "b"}, planner)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.BlobStore().Get(t.Context(), "key"); err == nil {
			t.Error("S3 answered")
		}
		if len(agents) != 1 || !slices.Contains(strings.Fields(agents[0]), want) {
			t.Errorf("the user agents are %q, want %s in the only one", agents, want)
		}
	}
}

var planner = Service{Name: "planner", Required: []string{settings.Bucket}}

// TestSDKLogger requires that a warning of the AWS SDK is a JSON line with a level, as all others.
func TestSDKLogger(t *testing.T) {
	var out bytes.Buffer
	log := sdkLogger(slog.New(slog.NewJSONHandler(&out, nil)))
	log.Logf(logging.Debug, "not written")
	log.Logf(logging.Warn, "failed to discard %d bytes", 7)
	var line struct{ Level, Msg, Text string }
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Level != "WARN" || line.Text != "failed to discard 7 bytes" {
		t.Errorf("%q: %+v, %v", out.String(), line, err)
	}
}

func TestOpen(t *testing.T) {
	t.Run("everything required", func(t *testing.T) {
		p, err := opened(t, map[string]string{"CLUSTER_NAME": "prod", "AWS_REGION": "eu-west-1", "JOIST_BUCKET": "b"}, planner)
		if err != nil {
			t.Fatal(err)
		}
		if p.AWS.Region != "eu-west-1" || p.Cluster != (event.Cluster{Name: "prod"}) {
			t.Errorf("region %s, cluster %v", p.AWS.Region, p.Cluster)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		_, err := opened(t, nil, planner)
		for _, name := range []string{"JOIST_CLUSTER_NAME", "AWS_REGION", "JOIST_BUCKET"} {
			if err == nil || !strings.Contains(err.Error(), name+" is not set") {
				t.Errorf("the error does not name the missing variable %s: %v", name, err)
			}
		}
	})
}

// Without credentials nothing starts, and the error says what to do.
func TestCredentials(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	env := map[string]string{"CLUSTER_NAME": "prod", "AWS_REGION": "eu-west-1", "JOIST_BUCKET": "b"}
	p, err := opened(t, env, planner)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkCredentials(t.Context(), p.AWS); err == nil || !strings.Contains(err.Error(), "AWS_PROFILE") {
		t.Error(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	if p, err = opened(t, env, planner); err != nil {
		t.Fatal(err)
	}
	if err := checkCredentials(t.Context(), p.AWS); err != nil {
		t.Error(err)
	}
}

// api answers the two calls of IdentifyCluster.
type api struct {
	cluster.Client
	uid     string
	refused error
	// failures is the number of lists that refused answers; all if it is nil.
	failures *int
}

func (a api) Get(context.Context, cluster.Kind, cluster.Key) (cluster.Object, error) {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{UID: types.UID(a.uid)}}, nil
}

func (a api) List(context.Context, cluster.Kind, string) ([]cluster.Object, error) {
	if a.failures != nil {
		if *a.failures == 0 {
			return nil, nil
		}
		*a.failures--
	}
	return nil, a.refused
}

func TestIdentify(t *testing.T) {
	denied := fault.F("list nodepools", fault.Denied, "forbidden").WithHint("grant it")
	restarting := fault.F("list nodepools", fault.Retry, "connection refused")
	for _, c := range []struct {
		name string
		api  api
		uid  string
		want string
	}{
		{"without JOIST_CLUSTER_UID", api{uid: "u1"}, "", ""},
		{"from the API", api{uid: "u1"}, "u1", ""},
		{"another JOIST_CLUSTER_UID", api{uid: "u1"}, "u2", "JOIST_CLUSTER_UID is u2, but the cluster's UID is u1"},
		{"without permission", api{uid: "u1", refused: denied}, "", "grant it"},
		{"before the API server has read its roles", api{uid: "u1", refused: denied, failures: new(3)}, "", ""},
		{"while the API server restarts", api{uid: "u1", refused: restarting, failures: new(10)}, "", ""},
		{"without an API server", api{uid: "u1", refused: restarting}, "", "connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, err := IdentifyCluster(t.Context(), c.api, event.Cluster{Name: "prod", UID: c.uid})
				switch {
				case c.want == "" && (err != nil || got.UID != "u1"):
					t.Errorf("%v: %v", got, err)
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
					t.Errorf("error %[2]v, want it to contain %[1]q", c.want, err)
				}
			})
		})
	}
}

// view is a cache that is not synced, with a problem.
type view struct {
	changed chan struct{}
	problem error
	synced  bool
}

func (v *view) Run(ctx context.Context)  { <-ctx.Done() }
func (v *view) Changed() <-chan struct{} { return v.changed }
func (v *view) Synced() bool             { return v.synced }
func (v *view) Problem() error           { return v.problem }

// A cache that cannot sync is reported, although reconciles do nothing.
func TestLoopReportsUnsyncedCache(t *testing.T) {
	p, err := opened(t, map[string]string{"CLUSTER_NAME": "prod", "AWS_REGION": "eu-west-1", "JOIST_BUCKET": "b"}, planner)
	if err != nil {
		t.Fatal(err)
	}
	var reported []string
	p.ErrorLog.Write = func(err error, _ int) { reported = append(reported, err.Error()) }
	ctx, cancel := context.WithCancel(t.Context())
	steps, asked := 0, 0
	loop, feed := p.NewLoop(host.Loop{Interval: time.Millisecond, Reconcile: func(context.Context) error {
		if steps++; steps == 2 {
			cancel()
		}
		return nil
	}}, func() bool { asked++; return false }, &view{changed: make(chan struct{}), problem: fault.F("watch nodepools", fault.Denied, "forbidden")})
	if err := host.RunTogether(ctx, loop, feed); err != nil {
		t.Error(err)
	}
	if asked == 0 {
		t.Error("the loop did not check whether it reconciled")
	}
	if len(reported) != 1 || !strings.Contains(reported[0], "watch nodepools: forbidden") {
		t.Errorf("reported errors %q", reported)
	}
}
