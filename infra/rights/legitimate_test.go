package rights_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// profileARN returns the ARN of an instance profile below a cluster's path.
func profileARN(cluster string) string {
	return "arn:aws:iam::" + account + ":instance-profile/karpenter/" + region + "/" + cluster + "/0b5e1d0a/" + cluster + "_1234"
}

func profileTags(cluster string) map[string]string {
	return tags("kubernetes.io/cluster/"+cluster, "owned", "eks:eks-cluster-name", cluster,
		"karpenter.k8s.aws/ec2nodeclass", "default", "topology.kubernetes.io/region", region)
}

// publishEvents returns the request of events:PutEvents with one entry.
func publishEvents(busName, source string, t event.Type) []need {
	return singleCall(newCall("events:PutEvents", bus(busName), key("events:source", source), key("events:detail-type", string(t))))
}

// deliverMessage returns events:PutEvents of an entry that a rule of the cluster's bus
// delivers. IAM sees the source and type of the outer event, the consumer those of the
// inner one.
func deliverMessage(outerSource string, outer event.Type, innerSource string, inner event.Type) []need {
	needs := publishEvents(cluster+"-joist", outerSource, outer)
	needs[0].entry = fmt.Appendf(nil, `{"source":%q,"detail-type":%q,"detail":{"cluster":%q,"source":%q,"type":%q}}`, outerSource, outer, cluster, innerSource, inner)
	return needs
}

// legitimate returns the calls that Joist makes: of every adapter in shared, and of every
// document that a service reads or writes.
func legitimate() []call {
	return slices.Concat(legitimateLaunches(), legitimateProfiles(), legitimateReads(), legitimateDocuments(), legitimateMessages(), legitimateIdentities())
}

func legitimateLaunches() []call {
	classTags := mergeTags(launchedTags(cluster), "Env", "prod", "karpenter.sh/discovery", cluster, "Name", "web")
	dry := mergeTags(ownedTags(cluster), "karpenter.sh/nodepool", "")
	alone := mergeTags(launchedTags(cluster), "karpenter.sh/nodepool", "")
	old := mergeTags(ownedTags(cluster), "eks:eks-cluster-name", "-")
	named := tags("Name", "web-1", "karpenter.sh/nodeclaim", "web-1", "eks:eks-cluster-name", cluster)
	return []call{
		{name: "launch by an own template", who: "launcher", models: "ec2cloud.CreateFleet", needs: launch{tags: launchedTags(cluster), template: ownedTags(cluster)}.needs()},
		{name: "launch with a node class's tags", who: "launcher", models: "ec2cloud.CreateFleet, spec.tags", needs: launch{tags: classTags, template: ownedTags(cluster)}.needs()},
		{name: "launch into a shared subnet and a shared reservation", who: "launcher", models: "ec2cloud.CreateFleet", needs: []need{
			shared(newCall("ec2:RunInstances", otherARN(ec2("subnet"), account, foreign))), shared(newCall("ec2:RunInstances", otherARN(ec2("capacity-reservation"), account, foreign))),
			newCall("ec2:RunInstances", ec2("placement-group")),
			newCall("ec2:RunInstances", ec2("snapshot"), resourceTags(tags("kubernetes.io/cluster/"+cluster, "shared")))}},
		{name: "launch with an own snapshot", who: "launcher", models: "ec2cloud.CreateFleet", needs: []need{
			newCall("ec2:CreateFleet", ec2("snapshot"), resourceTags(tags("kubernetes.io/cluster/"+cluster, "owned"))), newCall("ec2:RunInstances", ec2("snapshot"), resourceTags(tags("kubernetes.io/cluster/"+cluster, "owned")))}},
		{name: "make a launch template", who: "launcher", models: "ec2cloud.EnsureTemplate", needs: makeTemplate(ownedTags(cluster))},
		{name: "try a launch template", who: "launcher", models: "ec2cloud.TryTemplate", needs: makeTemplate(dry)},
		{name: "try a fleet and a run", who: "launcher", models: "ec2cloud.TryFleet, ec2cloud.TryRun", needs: launch{tags: dry, template: dry}.needs()},
		{name: "delete an own launch template", who: "launcher", models: "ec2cloud.DeleteTemplate", needs: singleCall(newCall("ec2:DeleteLaunchTemplate", ec2("launch-template"), resourceTags(ownedTags(cluster))))},
		{name: "delete a launch template of dry runs", who: "launcher", models: "ec2cloud.DeleteTemplate", needs: singleCall(newCall("ec2:DeleteLaunchTemplate", ec2("launch-template"), resourceTags(dry)))},
		{name: "list launch templates", who: "launcher", models: "ec2cloud.Templates", needs: singleCall(newCall("ec2:DescribeLaunchTemplates", "*"))},
		{name: "terminate an own instance", who: "launcher", models: "ec2cloud.Terminate", needs: singleCall(newCall("ec2:TerminateInstances", ec2("instance"), resourceTags(launchedTags(cluster))))},
		{name: "terminate an instance that Karpenter launched before v1", who: "launcher", models: "ec2cloud.Terminate", needs: singleCall(newCall("ec2:TerminateInstances", ec2("instance"), resourceTags(old)))},
		{name: "launch for a NodeClaim without a NodePool", who: "launcher", models: "ec2cloud.CreateFleet", needs: launch{tags: alone, template: dry}.needs()},
		{name: "terminate an instance of a NodeClaim without a NodePool", who: "launcher", models: "ec2cloud.Terminate", needs: singleCall(newCall("ec2:TerminateInstances", ec2("instance"), resourceTags(alone)))},
		{name: "name an instance of a NodeClaim without a NodePool", who: "launcher", models: "ec2cloud.Tag", needs: changeTags(alone, named)},
		{name: "name a new instance", who: "launcher", models: "ec2cloud.Tag", needs: changeTags(launchedTags(cluster), named)},
		{name: "name an instance that Karpenter launched before v1", who: "launcher", models: "ec2cloud.Tag", needs: changeTags(mergeTags(old, "karpenter.sh/nodeclaim", "web-1", "Name", "x"), tags("eks:eks-cluster-name", cluster))},
		{name: "give a claimed instance its name", who: "launcher", models: "ec2cloud.Tag", needs: changeTags(mergeTags(launchedTags(cluster), "karpenter.sh/nodeclaim", "web-1"), tags("Name", "web-1"))},
		{name: "read the owner of an instance", who: "launcher", models: "ec2cloud.DescribeInstances", needs: singleCall(newCall("ec2:DescribeInstances", "*"))},
	}
}

// shared sets the owner to this account, because the owner of a resource that AWS RAM
// shares has agreed to its use.
func shared(n need) need {
	n.owner = account
	return n
}

func legitimateProfiles() []call {
	has, asked := resourceTags(profileTags(cluster)), requestTags(profileTags(cluster))
	missing := "arn:aws:iam::" + account + ":instance-profile/" + cluster + "_1234"
	return []call{
		{name: "create an instance profile", who: "launcher", models: "iamprofile.EnsureProfile", needs: singleCall(newCall("iam:CreateInstanceProfile", profileARN(cluster), asked))},
		{name: "add the node role to it", who: "launcher", models: "iamprofile.EnsureProfile", needs: []need{
			newCall("iam:AddRoleToInstanceProfile", profileARN(cluster), has), newCall("iam:PassRole", role("KarpenterNodeRole-"+cluster), key("iam:PassedToService", "ec2.amazonaws.com"))}},
		{name: "remove a former role", who: "launcher", models: "iamprofile.EnsureProfile", needs: singleCall(newCall("iam:RemoveRoleFromInstanceProfile", profileARN(cluster), has))},
		{name: "mark a profile as superseded", who: "launcher", models: "iamprofile.TagProfile", needs: singleCall(newCall("iam:TagInstanceProfile", profileARN(cluster), has,
			requestTags(mergeTags(profileTags(cluster), "joist.sh/superseded", "2026-11-22T12:00:00Z"))))},
		{name: "delete a profile", who: "launcher", models: "iamprofile.DeleteProfile", needs: singleCall(newCall("iam:DeleteInstanceProfile", profileARN(cluster), has))},
		{name: "read a profile", who: "launcher", models: "iamprofile.Profile", needs: singleCall(newCall("iam:GetInstanceProfile", profileARN(cluster), has))},
		{name: "read a missing profile", who: "launcher", models: "iamprofile.Profile", needs: singleCall(newCall("iam:GetInstanceProfile", missing))},
		{name: "list the profiles of a class", who: "launcher", models: "iamprofile.ListProfiles", needs: singleCall(newCall("iam:ListInstanceProfiles", "arn:aws:iam::"+account+":instance-profile/karpenter/"+region+"/"+cluster+"/0b5e1d0a/"))},
	}
}

func legitimateReads() []call {
	eks := "arn:aws:eks:" + region + ":" + account + ":cluster/" + cluster
	out := []call{
		{name: "read prices", who: "catalog", models: "awspricing", needs: singleCall(newCall("pricing:GetProducts", "*", key("aws:RequestedRegion", away)))},
		{name: "read AWS's parameters of images", who: "catalog", models: "ssmparameters", needs: singleCall(newCall("ssm:GetParameter", "arn:aws:ssm:"+region+"::parameter/aws/service/eks/optimized-ami/1.36/image_id"))},
		{name: "read the cluster", who: "catalog", models: "ekscluster", needs: singleCall(newCall("eks:DescribeCluster", eks))},
		{name: "read zonal shifts", who: "catalog", models: "arczonalshift", needs: singleCall(newCall("arc-zonal-shift:GetManagedResource", eks, key("arc-zonal-shift:ResourceIdentifier", eks)))},
		{name: "read the status of instances", who: "interruption", models: "ec2cloud.Statuses", needs: []need{newCall("ec2:DescribeInstanceStatus", "*"), newCall("ec2:DescribeInstances", "*")}},
	}
	for _, action := range []string{"Instances", "Subnets", "SecurityGroups", "Images", "CapacityReservations", "PlacementGroups", "InstanceTypes",
		"InstanceTypeOfferings", "AvailabilityZones", "SpotPriceHistory"} {
		out = append(out, call{name: "describe: " + action, who: "catalog", models: "ec2cloud", needs: singleCall(newCall("ec2:Describe"+action, "*"))})
	}
	return out
}

func legitimateDocuments() []call {
	var out []call
	add := func(who, name, action, keyName string) {
		out = append(out, call{name: who + " " + name + " " + keyName, who: who, models: "s3blob", needs: singleCall(newCall(action, object(cluster, keyName)))})
	}
	for _, r := range []struct {
		who           string
		reads, writes []string
	}{
		{"watcher", []string{"catalogues/latest"}, []string{"batches/1", "nodes/1", "snapshots/1", "snapshots/latest"}},
		{"planner", []string{"batches/1", "nodes/1", "catalogues/1"}, []string{"intents/1", "plans/1"}},
		{"disruption", []string{"snapshots/1", "nodes/1", "catalogues/1"}, []string{"intents/1", "plans/1"}},
		{"catalog", nil, []string{"catalogues/1", "catalogues/latest", "inventories/1", "markets/1", "markets/latest"}},
		{"lifecycle", []string{"plans/1", "intents/1", "inventories/1", "catalogues/1", "catalogues/latest"}, nil},
		{"launcher", []string{"intents/1"}, nil},
		{"operator", []string{"snapshots/latest", "nodes/1", "catalogues/1", "plans/1"}, nil},
	} {
		for _, k := range slices.Concat(r.reads, r.writes) {
			add(r.who, "reads", "s3:GetObject", k)
		}
		for _, k := range r.writes {
			add(r.who, "writes", "s3:PutObject", k)
		}
		out = append(out, call{name: r.who + " receives an error for a missing document", who: r.who, models: "s3blob.Written",
			needs: singleCall(newCall("s3:ListBucket", "arn:aws:s3:::joist-"+cluster+"-"+account+"-"+region))})
	}
	return out
}

func legitimateMessages() []call {
	var out []call
	for _, spec := range event.Specs {
		for _, producer := range spec.Producers {
			if spec.IsFact() {
				out = append(out, call{name: producer + " says " + string(spec.Type), who: producer, models: "eventbus.Send", needs: deliverMessage("joist/"+producer, spec.Type, "joist/"+producer, spec.Type)})
				continue
			}
			for _, consumer := range spec.Consumers {
				out = append(out, call{name: producer + " sends " + string(spec.Type) + " to " + consumer, who: producer, models: "sqsqueue.Send", needs: singleCall(newCall("sqs:SendMessage", queue(queueOf(consumer))))})
			}
		}
	}
	for _, service := range append(slices.Clone(topology.ExternalServices), "lifecycle") {
		q := queue(queueOf(service))
		needs := []need{newCall("sqs:ReceiveMessage", q), newCall("sqs:DeleteMessage", q), newCall("sqs:ChangeMessageVisibility", q), newCall("sqs:SendMessage", queue(deadOf(service)))}
		out = append(out, call{name: service + " receives from its queue", who: service, models: "host", needs: needs})
		if service != "lifecycle" {
			out = append(out,
				call{name: service + " is polled by Lambda", who: service, models: "an event source mapping", needs: []need{newCall("sqs:GetQueueAttributes", q), newCall("sqs:ReceiveMessage", q)}},
				call{name: service + " writes its log", who: service, models: "Lambda", needs: []need{
					newCall("logs:CreateLogStream", logOf(service)), newCall("logs:PutLogEvents", logOf(service)+"1")}},
				call{name: service + "'s function assumes its role", who: "aws/lambda.amazonaws.com", models: "Lambda", needs: singleCall(newCall("sts:AssumeRole", placeholder+service))})
		}
	}
	for _, notice := range []string{"health", "spot", "rebalance", "state", "reservation"} {
		source := key("aws:SourceArn", "arn:aws:events:"+region+":"+account+":rule/"+cluster+"-joist-"+notice)
		out = append(out, call{name: "the rule of " + notice + " sends", who: "aws/events.amazonaws.com", models: "EventBridge",
			needs: []need{newCall("sqs:SendMessage", queue(cluster), source, key("aws:SourceAccount", account)), newCall("sqs:SendMessage", queue(deadOf("interruption")), source, key("aws:SourceAccount", account))}})
	}
	source := key("aws:SourceArn", "arn:aws:events:"+region+":"+account+":rule/"+cluster+"-joist/"+cluster+"-joist-inbox")
	return append(out,
		call{name: "the inbox's rule sends", who: "aws/events.amazonaws.com", models: "EventBridge", needs: []need{
			newCall("sqs:SendMessage", queue(queueOf("lifecycle")), source, key("aws:SourceAccount", account)), newCall("sqs:SendMessage", queue(deadOf("lifecycle")), source, key("aws:SourceAccount", account))}},
		call{name: "the scheduler sends undelivered ticks to the DLQ", who: "scheduler", models: "EventBridge Scheduler", needs: []need{
			newCall("sqs:SendMessage", queue(deadOf("catalog"))), newCall("sqs:SendMessage", queue(deadOf("interruption"))), newCall("sqs:SendMessage", queue(deadOf("launcher")))}},
		call{name: "the operator reads DLQ messages", who: "operator", models: "joist dead", needs: []need{newCall("sqs:ReceiveMessage", queue(deadOf("launcher"))), newCall("sqs:ChangeMessageVisibility", queue(deadOf("launcher")))}},
		call{name: "the replayer moves DLQ messages back", who: "replayer", models: "joist replay", needs: []need{newCall("sqs:StartMessageMoveTask", queue(deadOf("launcher"))), newCall("sqs:ReceiveMessage", queue(deadOf("launcher"))),
			newCall("sqs:DeleteMessage", queue(deadOf("launcher"))), newCall("sqs:GetQueueAttributes", queue(deadOf("launcher"))), newCall("sqs:SendMessage", queue(queueOf("launcher")))}},
		call{name: "the replayer replays the archive", who: "replayer", models: "joist replay --archive", needs: singleCall(newCall("events:StartReplay", "arn:aws:events:"+region+":"+account+":archive/"+cluster+"-joist"))},
	)
}

func logOf(service string) string {
	return "arn:aws:logs:" + region + ":" + account + ":log-group:/aws/lambda/" + cluster + "-joist-" + service + ":log-stream:"
}

func queueOf(service string) string {
	if service == "interruption" {
		return cluster
	}
	return cluster + "-joist-" + service
}

func deadOf(service string) string { return cluster + "-joist-" + service + "-dead" }

// pod returns the condition keys that Pod Identity sets for a pod.
func pod(accountID, clusterName, namespace, serviceAccount string) map[string][]string {
	return map[string][]string{
		"aws:SourceAccount": {accountID}, "aws:RequestTag/eks-cluster-arn": {"arn:aws:eks:" + region + ":" + accountID + ":cluster/" + clusterName},
		"aws:RequestTag/kubernetes-namespace": {namespace}, "aws:RequestTag/kubernetes-service-account": {serviceAccount},
	}
}

// webIdentity returns the condition keys that an OIDC provider sets for a pod.
func webIdentity(issuer, subject, audience string) map[string][]string {
	return map[string][]string{issuer + ":sub": {subject}, issuer + ":aud": {audience}}
}

func legitimateIdentities() []call {
	return []call{
		{name: "lifecycle's pod assumes its role", who: "aws/pods.eks.amazonaws.com", models: "EKS Pod Identity", needs: []need{
			newCall("sts:AssumeRole", placeholder+"lifecycle", pod(account, cluster, "joist", "joist-lifecycle")), newCall("sts:TagSession", placeholder+"lifecycle", pod(account, cluster, "joist", "joist-lifecycle"))}},
		{name: "watcher's pod assumes its role", who: "web/" + issuer, models: "a service account's token", needs: singleCall(newCall("sts:AssumeRoleWithWebIdentity", placeholder+"watcher",
			webIdentity(issuer, "system:serviceaccount:joist:joist-watcher", "sts.amazonaws.com")))},
		{name: "the audit rule writes events", who: "aws/events.amazonaws.com", models: "EventBridge", needs: []need{
			newCall("logs:CreateLogStream", factLog(cluster)),
			newCall("logs:PutLogEvents", factLog(cluster), key("aws:SourceArn", "arn:aws:events:"+region+":"+account+":rule/"+cluster+"-joist/"+cluster+"-joist-audit"))}},
		{name: "CloudWatch delivers events", who: "aws/delivery.logs.amazonaws.com", models: "EventBridge", needs: []need{
			newCall("logs:CreateLogStream", factLog(cluster)),
			newCall("logs:PutLogEvents", factLog(cluster), key("aws:SourceArn", "arn:aws:events:"+region+":"+account+":rule/"+cluster+"-joist/"+cluster+"-joist-audit"))}},
		{name: "the schedules assume their role", who: "aws/scheduler.amazonaws.com", models: "EventBridge Scheduler", needs: singleCall(newCall("sts:AssumeRole", placeholder+"scheduler",
			key("aws:SourceAccount", account), key("aws:SourceArn", "arn:aws:scheduler:"+region+":"+account+":schedule-group/"+cluster+"-joist")))},
		{name: "a node assumes its role", who: "aws/ec2.amazonaws.com", models: "EC2", needs: singleCall(newCall("sts:AssumeRole", role("KarpenterNodeRole-"+cluster)))},
	}
}

// Every call that Joist makes is allowed in every mode of operation.
func TestLegitimateCallsAreAllowed(t *testing.T) {
	s := joist(t, "Joist", deployed(t, currentSystem))
	seen := map[string]bool{}
	for _, c := range legitimate() {
		if seen[c.name] {
			t.Errorf("two calls have the name %q", c.name)
		}
		seen[c.name] = true
		if ok, refused := s.isAllowed(t, c); !ok {
			t.Errorf("%s: %s is denied", c.name, refused)
		}
	}
	t.Logf("Joist makes %d different calls", len(seen))
}
