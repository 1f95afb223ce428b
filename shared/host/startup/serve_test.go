package startup

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/host/profiling"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/queue/sqsqueue"
)

// freePort returns a port that nothing listens on.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// get returns the status and the body at a path of the metrics port.
func get(t *testing.T, p *Bootstrap, path string) (status int, body string) {
	t.Helper()
	answer, err := http.Get("http://127.0.0.1:" + strconv.Itoa(p.MetricsPort) + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// Profiles are served only if they are enabled, and only by a service that links them.
func TestProfiles(t *testing.T) {
	for _, c := range []struct {
		name, enabled string
		profiles      http.Handler
		want          int
	}{
		{"by default", "", profiling.Handler(), 404},
		{"disabled", "false", profiling.Handler(), 404},
		{"enabled", "true", profiling.Handler(), 200},
		{"enabled for a function", "true", nil, 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := opened(t, with(alone, settings.MetricsPort, freePort(t), settings.HealthPort, "0", settings.Profiling, c.enabled), Service{Name: "watcher", Profiles: c.profiles})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Serve(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"", "heap", "cmdline", "goroutine?debug=1"} {
				if status, _ := get(t, p, profiling.Path+path); status != c.want {
					t.Errorf("%s: status %d, want %d", path, status, c.want)
				}
			}
			if status, _ := get(t, p, "/metrics"); status != 200 {
				t.Errorf("/metrics: status %d", status)
			}
		})
	}
}

// Calls to AWS are counted once, for the cluster if the process serves several. Assuming a role is the process's own
// call.
func TestAWSCallsAreCounted(t *testing.T) {
	aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	defer aws.Close()
	t.Setenv("AWS_ENDPOINT_URL", aws.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	serve := func(t *testing.T, p *Bootstrap) string {
		t.Helper()
		if _, err := sqsqueue.QueueARN(t.Context(), p.AWS, "prod"); err == nil {
			t.Error("the call succeeded")
		}
		if err := p.Serve(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		_, body := get(t, p, "/metrics")
		return body
	}
	check := func(t *testing.T, body string, want ...string) {
		t.Helper()
		for _, line := range want {
			if !strings.Contains(body, line+"\n") {
				t.Errorf("no line %s", line)
			}
		}
		if n := strings.Count(body, "\naws_sdk_go_request_total{"); n != len(want) {
			t.Errorf("%d series, want %d", n, len(want))
		}
	}
	t.Run("one cluster", func(t *testing.T) {
		p, err := opened(t, with(alone, settings.MetricsPort, freePort(t), settings.HealthPort, "0"), planner)
		if err != nil {
			t.Fatal(err)
		}
		check(t, serve(t, p), `aws_sdk_go_request_total{action="GetCallerIdentity",code="400",service="STS"} 1`)
	})
	t.Run("several clusters", func(t *testing.T) {
		const at = "https://sqs.eu-west-1.amazonaws.com/111122223333/"
		all := several(t, with(alone, settings.MetricsPort, freePort(t), settings.HealthPort, "0"), object("a", at+"a"), object("b", at+"b"))
		check(t, serve(t, all[1]), `aws_sdk_go_request_total{action="AssumeRole",code="400",service="STS"} 1`,
			`aws_sdk_go_request_total{action="GetCallerIdentity",cluster="b",code="0",service="STS"} 1`)
	})
}
