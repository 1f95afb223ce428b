package awscalls_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joist-autoscaler/joist/shared/aws/awscalls"
)

// answer is an HTTP answer of a test's SQS.
type answer struct {
	status int
	body   string
}

var (
	fine      = answer{200, `{"QueueUrl":"http://q/1"}`}
	throttled = answer{400, `{"__type":"com.amazonaws.sqs#RequestThrottled","message":"slow down"}`}
	broken    = answer{500, `{}`}
	missing   = answer{400, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"no"}`}
)

func TestObserve(t *testing.T) {
	attempt := func(code string, isThrottled bool) awscalls.MeasuredCall {
		return awscalls.MeasuredCall{Service: "SQS", Action: "GetQueueUrl", Code: code, Attempts: 1, IsThrottled: isThrottled}
	}
	for _, c := range []struct {
		name     string
		answers  []answer
		code     string
		attempts []awscalls.MeasuredCall
	}{
		{"at once", []answer{fine}, "200", []awscalls.MeasuredCall{attempt("200", false)}},
		{"throttled once", []answer{throttled, fine}, "200", []awscalls.MeasuredCall{attempt("400", true), attempt("200", false)}},
		{"broken twice", []answer{broken, broken, fine}, "200", []awscalls.MeasuredCall{attempt("500", false), attempt("500", false), attempt("200", false)}},
		{"not retried", []answer{missing}, "400", []awscalls.MeasuredCall{attempt("400", false)}},
		{"without an answer", nil, "0", []awscalls.MeasuredCall{attempt("0", false), attempt("0", false), attempt("0", false)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			left := c.answers
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/x-amz-json-1.0")
				w.WriteHeader(left[0].status)
				_, _ = w.Write([]byte(left[0].body))
				left = left[1:]
			}))
			defer server.Close()
			if c.answers == nil {
				server.Close()
			}
			var requests, attempts []awscalls.MeasuredCall
			config := awscalls.Observe(aws.Config{
				Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
			}, awscalls.CallHooks{
				Now:       time.Now,
				OnRequest: func(c awscalls.MeasuredCall) { requests = append(requests, c) },
				OnAttempt: func(c awscalls.MeasuredCall) { attempts = append(attempts, c) },
			})
			_, err := sqs.NewFromConfig(config, func(o *sqs.Options) { o.Retryer = immediately{o.Retryer} }).
				GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("q")})
			if (err == nil) != (c.code == "200") {
				t.Error(err)
			}
			want := []awscalls.MeasuredCall{{Service: "SQS", Action: "GetQueueUrl", Code: c.code, Attempts: len(c.attempts)}}
			if diff := cmp.Diff(want, requests, cmpopts.IgnoreFields(awscalls.MeasuredCall{}, "Duration")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.attempts, attempts, cmpopts.IgnoreFields(awscalls.MeasuredCall{}, "Duration")); diff != "" {
				t.Error(diff)
			}
			for _, a := range attempts {
				if a.Duration <= 0 || a.Duration > requests[0].Duration {
					t.Errorf("an attempt took %s and its request %s", a.Duration, requests[0].Duration)
				}
			}
		})
	}
}

// immediately retries without a pause.
type immediately struct{ aws.Retryer }

func (immediately) RetryDelay(int, error) (time.Duration, error) { return 0, nil }
