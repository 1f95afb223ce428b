package rights_test

import (
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/joist-autoscaler/joist/infra/evaluator"
	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// The test setting: two clusters of one account and region, and another account.
const (
	account = "111122223333"
	foreign = "444455556666"
	region  = "eu-west-1"
	away    = "us-east-1"
	cluster = "prod"
	beside  = "staging"
	common  = "joist-all"
	issuer  = "oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLED539D4633E53DE1B716D3041E"
	onCall  = "arn:aws:iam::111122223333:role/on-call"
)

func scope(t *testing.T, name string) rights.Scope {
	t.Helper()
	plan, err := topology.NewPlan(topology.Cluster{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return rights.Scope{
		Partition: "aws", Account: account, Region: region, Plan: plan,
		Bucket: "joist-" + name + "-" + account + "-" + region, Prefix: name, NodeRole: role("KarpenterNodeRole-" + name),
		Profiles: true, ZonalShift: true, NodeTags: []string{"Env", "ManagedBy", "karpenter.sh/discovery"}, Replayers: []string{onCall},
	}
}

func role(name string) string { return "arn:aws:iam::" + account + ":role/" + name }

// read caches parsed policies, because the same few documents decide thousands of calls.
var read sync.Map

func parsePolicy(t *testing.T, name string, d rights.Document) evaluator.Policy {
	t.Helper()
	text := d.JSON()
	if p, ok := read.Load(string(text)); ok {
		return p.(evaluator.Policy)
	}
	p, err := evaluator.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	read.Store(string(text), p)
	return p
}

// services returns all services that have a role, without people.
func services() []string {
	return []string{"catalog", "disruption", "interruption", "launcher", "lifecycle", "planner", "watcher"}
}

// tags returns tags from alternating keys and values.
func tags(pairs ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// mergeTags returns a copy with more tags; the value "-" removes a tag.
func mergeTags(base map[string]string, pairs ...string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, base)
	for k, v := range tags(pairs...) {
		if out[k] = v; v == "-" {
			delete(out, k)
		}
	}
	return out
}

// ownedTags returns the tags of resources that a cluster's Joist launches.
func ownedTags(name string) map[string]string {
	return tags("kubernetes.io/cluster/"+name, "owned", "eks:eks-cluster-name", name, "karpenter.sh/nodepool", "web", "karpenter.k8s.aws/ec2nodeclass", "default")
}

// launchedTags returns ownedTags and the tags of the launch intent.
func launchedTags(name string) map[string]string {
	return mergeTags(ownedTags(name), "joist.sh/intent", "i-1")
}

func ec2(kind string) string {
	if kind == "image" || kind == "snapshot" {
		return "arn:aws:ec2:" + region + "::" + kind + "/" + kind + "-1"
	}
	return "arn:aws:ec2:" + region + ":" + account + ":" + kind + "/" + kind + "-1"
}

// otherARN returns the ARN with another region or account.
func otherARN(arn, from, to string) string { return strings.Replace(arn, ":"+from+":", ":"+to+":", 1) }

func queue(name string) string { return "arn:aws:sqs:" + region + ":" + account + ":" + name }
func bus(name string) string {
	return "arn:aws:events:" + region + ":" + account + ":event-bus/" + name
}
func object(name, key string) string {
	return "arn:aws:s3:::joist-" + name + "-" + account + "-" + region + "/" + name + "/" + key
}
