package stack

import (
	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// documents are the policies of one cluster.
type documents struct {
	place   place
	cluster config.Cluster
}

func rightsOf(s shared, k config.Cluster) documents { return documents{s.place, k} }

func (d documents) trust(service string) map[string]any {
	principal := "lambda.amazonaws.com"
	switch service {
	case topology.Scheduler:
		principal = "scheduler.amazonaws.com"
	case "watcher", "lifecycle":
		principal = "pods.eks.amazonaws.com"
	}
	return map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
		"Effect": "Allow", "Principal": map[string]any{"Service": principal}, "Action": "sts:AssumeRole",
	}}}
}

func (d documents) role(service string) map[string]any {
	return map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
		"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": d.place.arn("sqs", d.cluster.Plan.Prefix+"-joist-"+service+"-dead"),
	}}}
}

func (d documents) queue(q topology.Queue) map[string]any { return d.tls(q.Name) }

func (d documents) dead(q topology.Queue) map[string]any { return d.tls(q.Dead) }

func (d documents) auditDead() map[string]any { return d.tls("audit") }

func (d documents) tls(name string) map[string]any {
	return map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
		"Sid": "DenyInsecureTransport", "Effect": "Deny", "Principal": "*", "Action": "sqs:*", "Resource": d.place.arn("sqs", name),
		"Condition": map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}},
	}}}
}
