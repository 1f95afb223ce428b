package authorization

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/joist-autoscaler/joist/infra/evaluator"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Calls by people, through the joist commands that read and replay.

// eks returns the requests of a call, from the path of EKS's resource.
func (g *Authorizer) eks(r *http.Request) []evaluator.Request {
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/clusters/"), "/", 3)
	cluster := parts[0]
	switch {
	case len(parts) == 3 && parts[1] == "access-entries":
		// The rest of the ARN identifies the principal's entry.
		return one("eks:DescribeAccessEntry", g.Place.arn("eks", "access-entry/"+cluster+"/x"), nil)
	case len(parts) == 3 && parts[1] == "pod-identity-associations":
		return one("eks:DescribePodIdentityAssociation", g.Place.arn("eks", "podidentityassociation/"+cluster+"/"+parts[2]), nil)
	case len(parts) == 2 && parts[1] == "pod-identity-associations":
		return one("eks:ListPodIdentityAssociations", g.Place.arn("eks", "cluster/"+cluster), nil)
	}
	return one("eks:DescribeCluster", g.Place.arn("eks", "cluster/"+cluster), nil)
}

// lambda returns the requests of calls on functions.
func (g *Authorizer) lambda(r *http.Request) []evaluator.Request {
	if name, ok := strings.CutPrefix(r.URL.Path, "/2015-03-31/functions/"); ok {
		return one("lambda:GetFunctionConfiguration", g.Place.arn("lambda", "function:"+strings.TrimSuffix(name, "/configuration")), nil)
	}
	return one("lambda:ListEventSourceMappings", "*", nil)
}

// readMonitoring returns the requests of EventBridge's calls on rules, archives and replays.
func (g *Authorizer) readMonitoring(operation string, body []byte) ([]evaluator.Request, error) {
	var in struct{ Name, Rule, EventBusName, ArchiveName, ReplayName, EventSourceArn string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	action, replay := "events:"+operation, g.Place.arn("events", "replay/"+in.ReplayName)
	switch operation {
	case "ListRuleNamesByTarget":
		return one(action, "*", nil), nil
	case "DescribeRule", "ListTargetsByRule":
		name := in.Name + in.Rule
		if in.EventBusName != topology.DefaultBus {
			name = in.EventBusName + "/" + name
		}
		return one(action, g.Place.arn("events", "rule/"+name), nil), nil
	case "DescribeArchive":
		return one(action, g.Place.arn("events", "archive/"+in.ArchiveName), nil), nil
	case "StartReplay":
		return append(one(action, in.EventSourceArn, nil), one(action, replay, nil)...), nil
	case "DescribeReplay", "CancelReplay":
		return one(action, replay, nil), nil
	}
	return nil, errors.New(operation)
}

// move returns the requests of message-move tasks. The caller needs the permissions for
// everything that the task does
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html).
func move(operation string, body []byte) ([]evaluator.Request, error) {
	var in struct{ SourceArn, DestinationArn, TaskHandle string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if in.TaskHandle != "" {
		// The fake's task handle starts with the queue's ARN.
		text, err := base64.StdEncoding.DecodeString(in.TaskHandle)
		if err != nil {
			return nil, err
		}
		in.SourceArn, _, _ = strings.Cut(string(text), "#")
	}
	out := one("sqs:"+operation, in.SourceArn, nil)
	if operation != "StartMessageMoveTask" {
		return out, nil
	}
	for _, action := range []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"} {
		out = append(out, one(action, in.SourceArn, nil)...)
	}
	return append(out, one("sqs:SendMessage", in.DestinationArn, nil)...), nil
}
