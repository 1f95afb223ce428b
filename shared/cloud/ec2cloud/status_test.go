package ec2cloud

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

const statusAnswer = `<DescribeInstanceStatusResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><instanceStatusSet>%s</instanceStatusSet></DescribeInstanceStatusResponse>`

// statusItem returns an instance's status as EC2 writes it. code is that of a scheduled event, if there is one.
func statusItem(id, instance, system, volumes, code string) string {
	check := func(of, status string) string {
		since := ""
		if status == "impaired" {
			since = "<impairedSince>2026-11-01T00:00:00Z</impairedSince>"
		}
		return fmt.Sprintf("<%[1]s><status>%[2]s</status><details><item><name>reachability</name>%[3]s</item></details></%[1]s>", of, status, since)
	}
	event := ""
	if code != "" {
		event = "<eventsSet><item><code>" + code + "</code><notBefore>2026-11-02T00:00:00Z</notBefore></item></eventsSet>"
	}
	return "<item><instanceId>" + id + "</instanceId>" + check("instanceStatus", instance) + check("systemStatus", system) +
		check("attachedEbsStatus", volumes) + event + "</item>"
}

// statusEC2 answers calls of DescribeInstanceStatus, by the name and values of their filter.
type statusEC2 struct {
	answers map[string][]string
	sync.Mutex
	calls map[string]int
}

func (e *statusEC2) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	var filters []string
	for key, value := range form {
		if strings.HasPrefix(key, "Filter.") && strings.HasSuffix(key, ".Name") {
			filters = append(filters, value[0])
		}
	}
	e.Lock()
	defer e.Unlock()
	of := strings.Join(filters, "&")
	e.calls[of]++
	text := fmt.Sprintf(statusAnswer, strings.Join(e.answers[of], ""))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}, nil
}

// TestStatusesAreFiltered: EC2 sends only instances with a problem, however many healthy ones the account has, and an
// instance that several calls return is complete and returned once.
func TestStatusesAreFiltered(t *testing.T) {
	both := statusItem("i-both", "impaired", "impaired", "ok", "instance-stop")
	server := &statusEC2{calls: map[string]int{}, answers: map[string][]string{
		"":                       {statusItem("i-healthy", "ok", "ok", "ok", "")},
		"instance-status.status": {statusItem("i-instance", "impaired", "ok", "ok", ""), both},
		"system-status.status":   {statusItem("i-system", "ok", "impaired", "impaired", ""), both},
		"event.code":             {statusItem("i-event", "ok", "ok", "impaired", "system-maintenance"), both},
	}}
	client := New(aws.Config{Region: "us-west-2", HTTPClient: server, Credentials: aws.AnonymousCredentials{}})
	got, err := client.DescribeStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	since, planned := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	want := []cloud.Status{
		{InstanceID: "i-instance", Impaired: since},
		{InstanceID: "i-both", Impaired: since, Events: []cloud.ScheduledEvent{{Code: "instance-stop", NotBefore: planned}}},
		{InstanceID: "i-system", Impaired: since},
		{InstanceID: "i-event", Events: []cloud.ScheduledEvent{{Code: "system-maintenance", NotBefore: planned}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"instance-status.status": 1, "system-status.status": 1, "event.code": 1}, server.calls); diff != "" {
		t.Errorf("calls by filter (-want +got):\n%s", diff)
	}
}

// TestStatusFilterValues: EC2 documents these values.
func TestStatusFilterValues(t *testing.T) {
	var got []string
	for _, f := range statusFilters() {
		got = append(got, aws.ToString(f.Name)+"="+strings.Join(f.Values, ","))
	}
	want := []string{
		"instance-status.status=impaired", "system-status.status=impaired",
		"event.code=instance-reboot,system-reboot,system-maintenance,instance-retirement,instance-stop",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
