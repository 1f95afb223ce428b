package authorization_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/joist-autoscaler/joist/infra/evaluator"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/authorization"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
)

const role = "arn:aws:iam::123456789012:role/prod-joist-launcher"

// behind returns a guard with one role, which has one policy, in front of an AWS that
// answers every call.
func behind(t *testing.T, policy string) (*authorization.Authorizer, aws.Config) {
	t.Helper()
	parsed, err := evaluator.Parse("test", []byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	cloud := memcloud.New(memcloud.Options{Now: time.Now, Region: "eu-west-1"})
	g := &authorization.Authorizer{
		Place: authorization.Place{Partition: "aws", Account: "123456789012", Region: "eu-west-1"}, Cloud: cloud,
		Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.Header.Get("Content-Type"), "json") {
				_, _ = w.Write([]byte("{}"))
			}
		}),
	}
	g.AddCaller("AKIDROLE", authorization.Role{ARN: role, Policies: []evaluator.Policy{parsed}})
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	return g, aws.Config{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), HTTPClient: server.Client(),
		Credentials: credentials.NewStaticCredentialsProvider("AKIDROLE", "secret", ""),
		Retryer:     func() aws.Retryer { return aws.NopRetryer{} },
	}
}

const policy = `{"Version":"2012-10-17","Statement":[
 {"Sid":"Send","Effect":"Allow","Action":"sqs:SendMessage","Resource":"arn:aws:sqs:eu-west-1:123456789012:prod-joist-planner"},
 {"Sid":"Put","Effect":"Allow","Action":"events:PutEvents","Resource":"arn:aws:events:eu-west-1:123456789012:event-bus/prod-joist","Condition":{"StringEquals":{"events:source":"joist/launcher"}}},
 {"Sid":"Read","Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::joist/prod/intents/*"},
 {"Sid":"Look","Effect":"Allow","Action":"ec2:DescribeInstances","Resource":"*"},
 {"Sid":"Template","Effect":"Allow","Action":"ec2:CreateLaunchTemplate","Resource":"arn:aws:ec2:*:*:launch-template/*","Condition":{"StringEquals":{"aws:RequestTag/kubernetes.io/cluster/prod":"owned"}}},
 {"Sid":"Tags","Effect":"Allow","Action":"ec2:CreateTags","Resource":"arn:aws:ec2:*:*:launch-template/*","Condition":{"StringEquals":{"ec2:CreateAction":"CreateLaunchTemplate"}}}
]}`

// Each call is allowed with the permission that it needs, and denied without it.
func TestCallsAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		call   func(c aws.Config) error
		denied string
	}{
		"send": {func(c aws.Config) error {
			_, err := sqs.NewFromConfig(c).SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{
				QueueUrl: aws.String(*c.BaseEndpoint + "/123456789012/prod-joist-planner"),
				Entries:  []sqstypes.SendMessageBatchRequestEntry{{Id: aws.String("1"), MessageBody: aws.String("x")}},
			})
			return err
		}, ""},
		"send to another queue": {func(c aws.Config) error {
			_, err := sqs.NewFromConfig(c).SendMessage(t.Context(), &sqs.SendMessageInput{
				QueueUrl: aws.String(*c.BaseEndpoint + "/123456789012/other-joist-planner"), MessageBody: aws.String("x"),
			})
			return err
		}, "sqs:SendMessage on arn:aws:sqs:eu-west-1:123456789012:other-joist-planner"},
		"publish":                       {put("joist/launcher"), ""},
		"publish as another service":    {put("joist/planner"), "events:PutEvents"},
		"read an intent":                {get("prod/intents/x"), ""},
		"read another cluster's intent": {get("other/intents/x"), "s3:GetObject on arn:aws:s3:::joist/other/intents/x"},
		"describe": {func(c aws.Config) error {
			_, err := ec2.NewFromConfig(c).DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
			return err
		}, ""},
		"a template":                       {template("kubernetes.io/cluster/prod"), ""},
		"a template of another cluster":    {template("kubernetes.io/cluster/other"), "ec2:CreateLaunchTemplate"},
		"a template without a cluster tag": {template(""), "ec2:CreateLaunchTemplate"},
		"terminate": {func(c aws.Config) error {
			_, err := ec2.NewFromConfig(c).TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{"i-1"}})
			return err
		}, "ec2:TerminateInstances on arn:aws:ec2:eu-west-1:123456789012:instance/i-1"},
	} {
		g, c := behind(t, policy)
		err := test.call(c)
		denied := strings.Join(g.Denied(), "\n")
		switch {
		case test.denied == "" && denied != "":
			t.Errorf("%s: denied: %s", name, denied)
		case test.denied != "" && (err == nil || !strings.Contains(denied, test.denied)):
			t.Errorf("%s: %v, and %q does not contain %q", name, err, denied, test.denied)
		case test.denied == "" && len(g.Used()[role]) == 0:
			t.Errorf("%s: no call was checked (%v)", name, err)
		}
	}
}

func put(source string) func(aws.Config) error {
	return func(c aws.Config) error {
		_, err := eventbridge.NewFromConfig(c).PutEvents(context.Background(), &eventbridge.PutEventsInput{Entries: []eventtypes.PutEventsRequestEntry{{
			EventBusName: aws.String("prod-joist"), Source: aws.String(source), DetailType: aws.String("x"), Detail: aws.String("{}"),
		}}})
		return err
	}
}

func get(key string) func(aws.Config) error {
	return func(c aws.Config) error {
		_, err := s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = true }).
			GetObject(context.Background(), &s3.GetObjectInput{Bucket: aws.String("joist"), Key: aws.String(key)})
		return err
	}
}

func template(tag string) func(aws.Config) error {
	return func(c aws.Config) error {
		in := &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("t"), LaunchTemplateData: &types.RequestLaunchTemplateData{}}
		if tag != "" {
			in.TagSpecifications = []types.TagSpecification{{ResourceType: "launch-template", Tags: []types.Tag{{Key: aws.String(tag), Value: aws.String("owned")}}}}
		}
		_, err := ec2.NewFromConfig(c).CreateLaunchTemplate(context.Background(), in)
		return err
	}
}

// Requests by callers without a role of the deployment are allowed.
func TestCallersWithoutRolePass(t *testing.T) {
	g, c := behind(t, policy)
	c.Credentials = credentials.NewStaticCredentialsProvider("AKIDFAKE", "secret", "")
	_, err := ec2.NewFromConfig(c).TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{"i-1"}})
	if len(g.Denied()) > 0 || len(g.Used()) > 0 {
		t.Errorf("%v, %v, %v", g.Denied(), g.Used(), err)
	}
}
