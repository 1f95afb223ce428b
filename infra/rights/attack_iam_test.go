package rights_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/topology"
)

func attacksByRole() []attack {
	pass := func(arn, to string) []need {
		return singleCall(newCall("iam:PassRole", arn, key("iam:PassedToService", to)))
	}
	node := role("KarpenterNodeRole-" + cluster)
	var out []call
	for _, who := range pureServices() {
		out = append(out, call{name: who + " passes the node role to EC2", who: who, models: "PassRole", needs: pass(node, "ec2.amazonaws.com"), apart: true})
	}
	for _, to := range []string{"lambda", "ecs-tasks", "ssm", "cloudformation", "eks", "pods.eks", "scheduler", "glue", "sagemaker", "codebuild"} {
		out = append(out, call{name: "launcher passes the node role to another service: " + to, who: "launcher", models: "PassRole", needs: pass(node, to+".amazonaws.com")})
	}
	for name, arn := range map[string]string{
		"an administrator's role": role("administrator"), "the other cluster's node role": role("KarpenterNodeRole-" + beside), "its own role": placeholder + "launcher",
		"a role whose name starts with the node role's name": node + "-admin", "a role of the same name below a path": role("team/KarpenterNodeRole-" + cluster),
		"the node role of another account": otherARN(node, account, foreign), "a service-linked role": role("aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"),
	} {
		out = append(out, call{name: "launcher passes " + name + " to EC2", who: "launcher", models: "PassRole", needs: pass(arn, "ec2.amazonaws.com")})
	}
	out = append(out, call{name: "launcher launches with an administrator's role", who: "launcher", models: "CreateFleet",
		needs: launch{tags: launchedTags(cluster), template: ownedTags(cluster), node: role("administrator")}.needs()},
		call{name: "launcher launches with the other cluster's node role", who: "launcher", models: "CreateFleet",
			needs: launch{tags: launchedTags(cluster), template: ownedTags(cluster), node: role("KarpenterNodeRole-" + beside)}.needs()},
		call{name: "the other cluster's launcher passes our node role", who: "neighbour/launcher", models: "PassRole", needs: pass(node, "ec2.amazonaws.com")},
		call{name: "the scheduler passes the node role", who: "scheduler", models: "PassRole", needs: pass(node, "ec2.amazonaws.com"), apart: true})
	return sortAttacks(asPrincipal(passing, out...))
}

// sortAttacks sorts attacks that were collected from a map.
func sortAttacks(list []attack) []attack {
	slices.SortStableFunc(list, func(a, b attack) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return list
}

func attacksOnProfiles() []attack {
	ours, theirs := profileTags(cluster), profileTags(beside)
	usual := "arn:aws:iam::" + account + ":instance-profile/KarpenterNodeInstanceProfile-" + cluster
	var out []call
	add := func(name, action, arn string, contexts ...map[string][]string) {
		out = append(out, call{name: "launcher " + name, who: "launcher", models: action, needs: singleCall(newCall("iam:"+action, arn, contexts...))})
	}
	add("makes a profile without tags", "CreateInstanceProfile", profileARN(cluster))
	add("makes a profile for the other cluster", "CreateInstanceProfile", profileARN(beside), requestTags(theirs))
	add("makes a profile with our tags on the other's path", "CreateInstanceProfile", profileARN(beside), requestTags(ours))
	add("makes a profile with our tags outside any path", "CreateInstanceProfile", usual+"-2", requestTags(ours))
	add("makes a profile for another region", "CreateInstanceProfile", profileARN(cluster), requestTags(mergeTags(ours, "topology.kubernetes.io/region", away)))
	add("makes a profile with an empty node class", "CreateInstanceProfile", profileARN(cluster), requestTags(mergeTags(ours, "karpenter.k8s.aws/ec2nodeclass", "")))
	add("makes a profile with the other cluster's name", "CreateInstanceProfile", profileARN(cluster), requestTags(mergeTags(ours, "eks:eks-cluster-name", beside)))
	add("tags the other cluster's profile as ours", "TagInstanceProfile", profileARN(beside), resourceTags(theirs), requestTags(ours))
	add("tags a profile without tags as ours", "TagInstanceProfile", usual, requestTags(ours))
	add("tags its own profile for the other cluster", "TagInstanceProfile", profileARN(cluster), resourceTags(ours), requestTags(theirs))
	add("tags its own profile without ownership tags", "TagInstanceProfile", profileARN(cluster), resourceTags(ours), requestTags(tags("role", "administrator")))
	add("removes the tags of its own profile", "UntagInstanceProfile", profileARN(cluster), resourceTags(ours))
	for _, action := range []string{"AddRoleToInstanceProfile", "RemoveRoleFromInstanceProfile", "DeleteInstanceProfile"} {
		add("calls "+action+" on the other cluster's profile", action, profileARN(beside), resourceTags(theirs))
		add("calls "+action+" on a profile without tags", action, usual)
		add("calls "+action+" on a profile of another region", action, profileARN(cluster), resourceTags(mergeTags(ours, "topology.kubernetes.io/region", away)))
		add("calls "+action+" on a profile outside our path, with our tags", action, usual, resourceTags(ours))
	}
	for _, key := range slices.Sorted(maps.Keys(ours)) {
		wrong := mergeTags(ours, key, "-")
		add("makes a profile without "+key, "CreateInstanceProfile", profileARN(cluster), requestTags(wrong))
		add("tags a profile without setting "+key, "TagInstanceProfile", profileARN(cluster), resourceTags(ours), requestTags(wrong))
		if key == "eks:eks-cluster-name" {
			// Profiles that Karpenter created before v1 lack this tag.
			continue
		}
		add("tags a profile that lacks "+key, "TagInstanceProfile", profileARN(cluster), resourceTags(wrong), requestTags(ours))
		add("adds a role to a profile without "+key, "AddRoleToInstanceProfile", profileARN(cluster), resourceTags(wrong))
	}
	node := role("KarpenterNodeRole-" + cluster)
	for _, action := range []string{"AttachRolePolicy", "PutRolePolicy", "UpdateAssumeRolePolicy", "DeleteRolePolicy", "TagRole", "DetachRolePolicy"} {
		add("calls "+action+" on the node role", action, node)
		add("calls "+action+" on its own role", action, placeholder+"launcher")
	}
	add("makes a role", "CreateRole", role("new"))
	add("makes a user's access key", "CreateAccessKey", "arn:aws:iam::"+account+":user/any")
	add("makes a service-linked role", "CreateServiceLinkedRole", role("aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"), key("iam:AWSServiceName", "spot.amazonaws.com"))
	add("makes a version of a policy", "CreatePolicyVersion", "arn:aws:iam::"+account+":policy/any")
	for _, who := range pureServices() {
		out = append(out, call{name: who + " makes an instance profile", who: who, models: "CreateInstanceProfile", needs: singleCall(newCall("iam:CreateInstanceProfile", profileARN(cluster), requestTags(ours))), apart: true})
	}
	return asPrincipal(profiling, out...)
}

func attacksOnTrust() []attack {
	var out []call
	for _, who := range pureServices() {
		out = append(out, call{name: who + " assumes the launcher's role", who: who, models: "AssumeRole", needs: singleCall(newCall("sts:AssumeRole", placeholder+"launcher"))})
	}
	federated := func(name, provider, subject, audience string) {
		out = append(out, call{name: name + " assumes watcher's role", who: "web/" + provider, models: "AssumeRoleWithWebIdentity",
			needs: singleCall(newCall("sts:AssumeRoleWithWebIdentity", placeholder+"watcher", webIdentity(issuer, subject, audience)))})
	}
	other := "oidc.eks.eu-west-1.amazonaws.com/id/OTHER"
	federated("another service account of the namespace", issuer, "system:serviceaccount:joist:default", "sts.amazonaws.com")
	federated("a service account of the same name in another namespace", issuer, "system:serviceaccount:default:joist-watcher", "sts.amazonaws.com")
	federated("a service account whose name starts with watcher's", issuer, "system:serviceaccount:joist:joist-watcher-2", "sts.amazonaws.com")
	federated("a token for another audience", issuer, "system:serviceaccount:joist:joist-watcher", "vault")
	federated("the other cluster's service account of that name", other, "system:serviceaccount:joist:joist-watcher", "sts.amazonaws.com")
	pods := func(name, resource string, who map[string][]string) {
		out = append(out, call{name: name, who: "aws/pods.eks.amazonaws.com", models: "EKS Pod Identity",
			needs: []need{newCall("sts:AssumeRole", resource, who), newCall("sts:TagSession", resource, who)}})
	}
	lifecycle := placeholder + "lifecycle"
	pods("a pod of another service account assumes lifecycle's role", lifecycle, pod(account, cluster, "joist", "default"))
	pods("a pod of another namespace assumes lifecycle's role", lifecycle, pod(account, cluster, "default", "joist-lifecycle"))
	pods("a pod of the other cluster assumes lifecycle's role", lifecycle, pod(account, beside, "joist", "joist-lifecycle"))
	pods("a pod without session tags assumes lifecycle's role", lifecycle, key("aws:SourceAccount", account))
	pods("a pod assumes the node role", role("KarpenterNodeRole-"+cluster), pod(account, cluster, "default", "default"))
	pods("a pod assumes the launcher's role", placeholder+"launcher", pod(account, cluster, "joist", "joist-lifecycle"))
	schedules := func(name, of, group string) {
		out = append(out, call{name: name + " assumes the scheduler's role", who: "aws/scheduler.amazonaws.com", models: "EventBridge Scheduler",
			needs: singleCall(newCall("sts:AssumeRole", placeholder+"scheduler", key("aws:SourceAccount", of), key("aws:SourceArn", "arn:aws:scheduler:"+region+":"+of+":schedule-group/"+group)))})
	}
	schedules("another schedule group", account, "default")
	schedules("the other cluster's schedule group", account, beside+"-joist")
	schedules("a schedule group of the same name in another account", foreign, cluster+"-joist")
	for _, service := range []string{"ec2", "ecs-tasks", "lambda"} {
		for _, of := range []string{"lifecycle", "watcher", "scheduler"} {
			out = append(out, call{name: fmt.Sprintf("%s assumes %s's role", service, of), who: "aws/" + service + ".amazonaws.com", models: "AssumeRole", needs: singleCall(newCall("sts:AssumeRole", placeholder+of))})
		}
	}
	out = append(out,
		call{name: "a function assumes the node role", who: "aws/lambda.amazonaws.com", models: "Lambda", needs: singleCall(newCall("sts:AssumeRole", role("KarpenterNodeRole-"+cluster)))},
		call{name: "an administrator assumes the launcher's role", who: "administrator", models: "AssumeRole", needs: singleCall(newCall("sts:AssumeRole", placeholder+"launcher"))},
		call{name: "an administrator of another account assumes the launcher's role", who: "outsider", models: "AssumeRole", needs: singleCall(newCall("sts:AssumeRole", placeholder+"launcher"))})
	for _, service := range topology.ExternalServices {
		needs := singleCall(newCall("sqs:ReceiveMessage", queue(queueOf(service)), key("lambda:SourceFunctionArn", function("prod", "report"))))
		out = append(out, call{name: "another function of the account reads the queue of " + service + " with its role", who: service, models: "Lambda", needs: needs})
	}
	// A principal that may create functions with the launcher's role gets credentials that
	// name the function.
	for name, arn := range map[string]string{
		"another function of the account":               function("prod", "report"),
		"a function of another account":                 otherARN(function(cluster, "launcher"), account, foreign),
		"the other cluster's launcher":                  function(beside, "launcher"),
		"a function of the same name in another region": otherARN(function(cluster, "launcher"), region, away),
	} {
		needs := singleCall(newCall("ec2:TerminateInstances", ec2("instance"), resourceTags(launchedTags(cluster))))
		maps.Copy(needs[0].context, key("lambda:SourceFunctionArn", arn))
		out = append(out, call{name: name + " uses the launcher's role", who: "launcher", models: "Lambda", needs: needs, apart: true})
	}
	return sortAttacks(asPrincipal(trusting, out...))
}
