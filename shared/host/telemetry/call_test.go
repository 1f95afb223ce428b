package telemetry

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/aws/awscalls"
)

// Calls have Karpenter's names and labels.
func TestCallMetrics(t *testing.T) {
	made, err := New(t.Context(), Options{Service: "watcher", Cluster: "prod", Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	call := awscalls.MeasuredCall{Service: "EC2", Action: "CreateFleet", Code: "503", Duration: 300 * time.Millisecond, Attempts: 3, IsThrottled: true}
	made.AWSHooks().OnRequest(call)
	made.AWSHooks().OnAttempt(call)
	kubernetes := KubernetesObserver{made}
	kubernetes.CountRequest("200", "GET")
	kubernetes.RecordDuration("LIST", "", "v1", "pods", "", time.Second)
	kubernetes.RecordLimiterWait("GET", "10.0.0.1", time.Second)
	kubernetes.CountWatch("pods", "ok")
	w := httptest.NewRecorder()
	made.metricsHandler(nil).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`aws_sdk_go_request_total{action="CreateFleet",code="503",service="EC2"} 1`,
		`aws_sdk_go_request_duration_seconds_bucket{action="CreateFleet",code="503",service="EC2",le="0.5"} 1`,
		`aws_sdk_go_request_retry_count_sum{action="CreateFleet",code="503",service="EC2"} 2`,
		`aws_sdk_go_request_attempt_total{action="CreateFleet",code="503",service="EC2"} 1`,
		`aws_sdk_go_request_attempt_duration_seconds_count{action="CreateFleet",code="503",service="EC2"} 1`,
		`joist_aws_throttles_total{action="CreateFleet",service="EC2"} 1`,
		`client_go_request_total{code="200",method="GET"} 1`,
		`client_go_request_duration_seconds_count{group="",kind="pods",subresource="",verb="LIST",version="v1"} 1`,
		`rest_client_rate_limiter_duration_seconds_count{host="10.0.0.1",verb="GET"} 1`,
		`joist_watches_started_total{kind="pods",result="ok"} 1`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
}
