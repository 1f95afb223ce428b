package startup

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// A queue is located by Karpenter's name without SQS permissions. No call is made if the URL is set, if the name is
// not set, or if the service does not read it.
func TestLocate(t *testing.T) {
	interruption := Service{Name: "interruption", Optional: []string{settings.QueueURL, settings.Interruptions}}
	const url = "https://sqs.eu-west-1.amazonaws.com/444455556666/other"
	for _, c := range []struct {
		name    string
		service Service
		env     map[string]string
		arn     string
		want    string
		asked   int
	}{
		{"by its name", interruption, map[string]string{"INTERRUPTION_QUEUE": "prod"}, "arn:aws:sts::111122223333:assumed-role/joist/i-1",
			"https://sqs.eu-west-1.amazonaws.com/111122223333/prod", 1},
		{"in China", interruption, map[string]string{"INTERRUPTION_QUEUE": "prod", "AWS_REGION": "cn-north-1"}, "arn:aws-cn:sts::111122223333:assumed-role/joist/i-1",
			"https://sqs.cn-north-1.amazonaws.com.cn/111122223333/prod", 1},
		{"by its URL despite a name", interruption, map[string]string{"INTERRUPTION_QUEUE": "prod", "JOIST_QUEUE_URL": url}, "", url, 0},
		{"without settings", interruption, nil, "", "", 0},
		{"by a service that does not read the interruption queue", planner, map[string]string{"INTERRUPTION_QUEUE": "prod"}, "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked++
				_, _ = w.Write([]byte("<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>" + c.arn +
					"</Arn><Account>111122223333</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"))
			}))
			t.Cleanup(server.Close)
			p := located(t, c.service, c.env, server.URL)
			if err := p.locateQueue(t.Context()); err != nil || p.QueueURL != c.want || asked != c.asked {
				t.Errorf("queue URL %q after %d STS calls, want %q after %d: %v", p.QueueURL, asked, c.want, c.asked, err)
			}
		})
	}
}

// If STS does not respond, the error names the variable to set instead.
func TestLocateErrorNamesVariable(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<ErrorResponse><Error><Code>ExpiredToken</Code></Error></ErrorResponse>", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	p := located(t, Service{Name: "interruption", Optional: []string{settings.Interruptions}}, map[string]string{"INTERRUPTION_QUEUE": "prod"}, server.URL)
	if err := p.locateQueue(t.Context()); err == nil || !strings.Contains(err.Error(), "queue prod, as JOIST_QUEUE_URL is not set") || p.QueueURL != "" {
		t.Errorf("%q: %v", p.QueueURL, err)
	}
}

// located opens a Bootstrap against AWS at a URL.
func located(t *testing.T, s Service, more map[string]string, url string) *Bootstrap {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	env := map[string]string{"CLUSTER_NAME": "prod", "AWS_REGION": "eu-west-1", "JOIST_BUCKET": "b"}
	maps.Copy(env, more)
	p, err := opened(t, env, s)
	if err != nil {
		t.Fatal(err)
	}
	p.process.aws.BaseEndpoint = aws.String(url)
	return p
}
