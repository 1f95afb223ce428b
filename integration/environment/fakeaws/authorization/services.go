package authorization

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/joist-autoscaler/joist/infra/evaluator"
)

// readRequests parses an API call into one request for each resource.
func (g *Authorizer) readRequests(service string, r *http.Request, body []byte) ([]evaluator.Request, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch service {
	case "sqs":
		return g.sqs(operation, body)
	case "events":
		return g.events(operation, body)
	case "s3":
		return g.s3(r)
	case "ssm":
		return g.ssm(operation, body)
	case "pricing":
		return one("pricing:"+operation, "*", nil), nil
	case "eks":
		return g.eks(r), nil
	case "lambda":
		return g.lambda(r), nil
	case "logs":
		return g.logs(operation, body)
	case "monitoring":
		return one("cloudwatch:"+path.Base(r.URL.Path), "*", nil), nil
	case "arc-zonal-shift":
		arn, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/managedresources/"))
		return one("arc-zonal-shift:GetManagedResource", arn, nil), err
	case "sts":
		return g.sts(body)
	case "iam":
		return g.iam(body)
	case "ec2":
		return g.ec2(body)
	default:
		return nil, fmt.Errorf("%s is not supported here", service)
	}
}

func one(action, resource string, context map[string][]string) []evaluator.Request {
	return []evaluator.Request{{Action: action, Resource: resource, Context: context}}
}

// sqs returns the requests of SQS calls. A batch needs the permission of the single call.
func (g *Authorizer) sqs(operation string, body []byte) ([]evaluator.Request, error) {
	if strings.HasSuffix(operation, "MessageMoveTask") || operation == "ListMessageMoveTasks" {
		return move(operation, body)
	}
	var in struct {
		QueueURL  string `json:"QueueUrl"`
		QueueName string
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	name := in.QueueName
	if name == "" {
		name = in.QueueURL[strings.LastIndex(in.QueueURL, "/")+1:]
	}
	return one("sqs:"+strings.TrimSuffix(operation, "Batch"), g.Place.arn("sqs", name), nil), nil
}

// logs returns the request of a call on a log group. The resource of its streams and events ends with an
// asterisk (https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazoncloudwatchlogs.html).
func (g *Authorizer) logs(operation string, body []byte) ([]evaluator.Request, error) {
	var in struct {
		Group string `json:"logGroupName"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	return one("logs:"+operation, g.Place.arn("logs", "log-group:"+in.Group+":*"), nil), nil
}

func (g *Authorizer) events(operation string, body []byte) ([]evaluator.Request, error) {
	if operation != "PutEvents" {
		return g.readMonitoring(operation, body)
	}
	var in struct {
		Entries []struct{ EventBusName, Source, DetailType string }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	var out []evaluator.Request
	for _, e := range in.Entries {
		name := e.EventBusName[strings.LastIndex(e.EventBusName, "/")+1:]
		out = append(out, evaluator.Request{
			Action: "events:PutEvents", Resource: g.Place.arn("events", "event-bus/"+name),
			Context: map[string][]string{"events:source": {e.Source}, "events:detail-type": {e.DetailType}},
		})
	}
	return out, nil
}

func (g *Authorizer) s3(r *http.Request) ([]evaluator.Request, error) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if key == "" {
		return one("s3:ListBucket", g.Place.arn("s3", bucket), map[string][]string{"s3:prefix": {r.URL.Query().Get("prefix")}}), nil
	}
	action, ok := map[string]string{http.MethodGet: "s3:GetObject", http.MethodHead: "s3:GetObject", http.MethodPut: "s3:PutObject", http.MethodDelete: "s3:DeleteObject"}[r.Method]
	if !ok {
		return nil, errors.New(r.Method)
	}
	return one(action, g.Place.arn("s3", bucket+"/"+key), nil), nil
}

// ssm returns the requests of SSM calls. AWS's public parameters belong to no account.
func (g *Authorizer) ssm(operation string, body []byte) ([]evaluator.Request, error) {
	var in struct{ Name string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	arn := g.Place.arn("ssm", "parameter/"+strings.TrimPrefix(in.Name, "/"))
	if strings.HasPrefix(in.Name, "/aws/service/") {
		arn = strings.Replace(arn, ":"+g.Place.Account+":", "::", 1)
	}
	return one("ssm:"+operation, arn, nil), nil
}

// tagged returns the condition keys of tags.
func tagged(kind string, tags map[string]string) map[string][]string {
	out := map[string][]string{}
	for key, value := range tags {
		out["aws:"+kind+"/"+key] = []string{value}
	}
	if kind == "RequestTag" && len(tags) > 0 {
		out["aws:TagKeys"] = keys(tags)
	}
	return out
}
