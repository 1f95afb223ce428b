package rights_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// readers returns the services that have a queue.
func readers() []string { return append(slices.Clone(topology.ExternalServices), "lifecycle") }

// forgedMessages reports whether the contract permits messages from one service to the
// other.
func forgedMessages(from, to string) bool {
	return slices.ContainsFunc(event.Specs, func(s event.Spec) bool {
		return !s.IsFact() && slices.Contains(s.Producers, from) && slices.Contains(s.Consumers, to)
	})
}

func attacksOnQueues() []attack {
	var out []call
	send := func(name, who, to string, contexts ...map[string][]string) {
		out = append(out, call{name: name, who: who, models: "SendMessage", needs: singleCall(newCall("sqs:SendMessage", queue(queueOf(to)), contexts...))})
	}
	for _, to := range readers() {
		for _, from := range append(services(), topology.Scheduler) {
			if !forgedMessages(from, to) {
				send(fmt.Sprintf("%s sends to %s", from, to), from, to)
			}
		}
		send("the other cluster's lifecycle sends to "+to, "neighbour/lifecycle", to)
		send("an administrator sends to "+to, "administrator", to)
		send("an administrator of another account sends to "+to, "outsider", to)
		send("an operator sends to "+to, "operator", to)
		send("an unrelated bucket sends to "+to, "aws/s3.amazonaws.com", to, key("aws:SourceArn", "arn:aws:s3:::any"), key("aws:SourceAccount", account))
	}
	for _, to := range []string{"interruption", "lifecycle", "launcher"} {
		rule := func(accountID, name string) []map[string][]string {
			return []map[string][]string{key("aws:SourceArn", "arn:aws:events:"+region+":"+accountID+":rule/"+name), key("aws:SourceAccount", accountID)}
		}
		send("a rule of another account sends to "+to, "aws/events.amazonaws.com", to, rule(foreign, cluster+"-joist-spot")...)
		send("another rule of the account sends to "+to, "aws/events.amazonaws.com", to, rule(account, "any")...)
		send("the other cluster's rule sends to "+to, "aws/events.amazonaws.com", to, rule(account, beside+"-joist-spot")...)
		send("EventBridge without a source sends to "+to, "aws/events.amazonaws.com", to)
		send("SQS without a source sends to "+to, "aws/sqs.amazonaws.com", to)
		send("a topic of another account sends to "+to, "aws/sns.amazonaws.com", to, key("aws:SourceArn", "arn:aws:sns:"+region+":"+foreign+":any"), key("aws:SourceAccount", foreign))
	}
	plain := key("aws:SecureTransport", "false")
	send("lifecycle sends to launcher without TLS", "lifecycle", "launcher", plain)
	send("watcher sends to planner without TLS", "watcher", "planner", plain)
	send("the spot rule sends without TLS", "aws/events.amazonaws.com", "interruption", plain, key("aws:SourceArn", "arn:aws:events:"+region+":"+account+":rule/"+cluster+"-joist-spot"), key("aws:SourceAccount", account))
	for _, to := range readers() {
		if to != "lifecycle" {
			out = append(out, call{name: "lifecycle sends to the DLQ of " + to, who: "lifecycle", models: "SendMessage", needs: singleCall(newCall("sqs:SendMessage", queue(deadOf(to))))})
		}
		out = append(out, call{name: "another rule sends to the DLQ of " + to, who: "aws/events.amazonaws.com", models: "EventBridge",
			needs: singleCall(newCall("sqs:SendMessage", queue(deadOf(to)), key("aws:SourceArn", "arn:aws:events:"+region+":"+account+":rule/any"), key("aws:SourceAccount", account)))},
			call{name: "an administrator sends to the DLQ of " + to, who: "administrator", models: "SendMessage", needs: singleCall(newCall("sqs:SendMessage", queue(deadOf(to))))})
	}
	return asPrincipal(queueing, out...)
}

func attacksOnContents() []attack {
	var out []call
	for _, who := range services() {
		for _, of := range readers() {
			if who == of {
				continue
			}
			out = append(out, call{name: who + " reads the DLQ of " + of, who: who, models: "ReceiveMessage", needs: singleCall(newCall("sqs:ReceiveMessage", queue(deadOf(of))))})
		}
	}
	for _, c := range [][2]string{{"planner", "launcher"}, {"catalog", "lifecycle"}, {"launcher", "interruption"}, {"watcher", "planner"}, {"lifecycle", "launcher"}} {
		out = append(out,
			call{name: c[0] + " receives messages of " + c[1], who: c[0], models: "ReceiveMessage", needs: singleCall(newCall("sqs:ReceiveMessage", queue(queueOf(c[1])))), apart: c[1] == "interruption"},
			call{name: c[0] + " deletes messages of " + c[1], who: c[0], models: "DeleteMessage", needs: singleCall(newCall("sqs:DeleteMessage", queue(queueOf(c[1])))), apart: c[1] == "interruption"})
	}
	for _, who := range []string{"launcher", "lifecycle"} {
		for _, action := range []string{"PurgeQueue", "SetQueueAttributes", "AddPermission", "DeleteQueue", "StartMessageMoveTask"} {
			out = append(out, call{name: who + " calls " + action + " on its own queue", who: who, models: action, needs: singleCall(newCall("sqs:"+action, queue(queueOf(who))))})
		}
	}
	for _, to := range []string{"launcher", "interruption"} {
		out = append(out,
			call{name: "the other cluster receives messages of " + to, who: "neighbour/" + to, models: "ReceiveMessage", needs: singleCall(newCall("sqs:ReceiveMessage", queue(queueOf(to))))},
			call{name: "an operator deletes messages in the DLQ of " + to, who: "operator", models: "DeleteMessage", needs: singleCall(newCall("sqs:DeleteMessage", queue(deadOf(to))))},
			call{name: "an operator moves messages out of the DLQ of " + to, who: "operator", models: "StartMessageMoveTask", needs: singleCall(newCall("sqs:StartMessageMoveTask", queue(deadOf(to))))},
			call{name: "an operator purges the queue of " + to, who: "operator", models: "PurgeQueue", needs: singleCall(newCall("sqs:PurgeQueue", queue(queueOf(to))))})
	}
	for _, to := range []string{"orders", beside} {
		out = append(out,
			call{name: "interruption receives messages of an unrelated queue, " + to, who: "interruption", models: "ReceiveMessage", needs: singleCall(newCall("sqs:ReceiveMessage", queue(to)))},
			call{name: "interruption deletes messages of an unrelated queue, " + to, who: "interruption", models: "DeleteMessage", needs: singleCall(newCall("sqs:DeleteMessage", queue(to)))},
			call{name: "interruption sends to an unrelated queue, " + to, who: "interruption", models: "SendMessage", needs: singleCall(newCall("sqs:SendMessage", queue(to)))})
	}
	for _, of := range readers() {
		for kind, name := range map[string]string{"from the queue": queueOf(of), "from the DLQ": deadOf(of)} {
			out = append(out, call{name: "an administrator receives " + kind + " of " + of + " without TLS", who: "administrator", models: "ReceiveMessage",
				needs: singleCall(newCall("sqs:ReceiveMessage", queue(name), key("aws:SecureTransport", "false")))})
		}
	}
	return sortAttacks(asPrincipal(deadReading, append(out,
		call{name: "interruption receives without TLS", who: "interruption", models: "ReceiveMessage", needs: singleCall(newCall("sqs:ReceiveMessage", queue(queueOf("interruption")), key("aws:SecureTransport", "false")))},
	)...))
}

// factsInside returns entries that IAM permits the sender to put, with facts of other
// services in their detail.
func factsInside() []call {
	var out []call
	put := func(outer, inner event.Type, who, as string) {
		out = append(out, call{name: fmt.Sprintf("%s publishes %s as %s inside its %s", who, inner, as, outer), who: who, models: "PutEvents",
			needs: deliverMessage("joist/"+who, outer, "joist/"+as, inner)})
	}
	for who, outer := range map[string]event.Type{
		"planner": event.PlanMadeType, "disruption": event.DisruptionProposedType, "launcher": event.LaunchSettledType,
		"catalog": event.CatalogRefreshedType, "interruption": event.NodeNoticedType,
	} {
		for _, inner := range event.Specs {
			if of := inner.Producers[0]; inner.IsFact() && of != who {
				put(outer, inner.Type, who, of)
			}
		}
		if who != "interruption" {
			put(outer, event.InstanceGoneType, who, who)
		}
	}
	slices.SortFunc(out, func(a, b call) int { return strings.Compare(a.name, b.name) })
	return out
}

func attacksOnBus() []attack {
	own := cluster + "-joist"
	var out []call
	for _, who := range services() {
		for _, spec := range event.Specs {
			if spec.IsFact() && !slices.Contains(spec.Producers, who) && len(spec.Producers) > 0 {
				out = append(out, call{name: who + " publishes " + string(spec.Type), who: who, models: "PutEvents", needs: publishEvents(own, "joist/"+who, spec.Type)})
			}
		}
	}
	out = append(out, factsInside()...)
	put := func(name, who string, needs []need) {
		out = append(out, call{name: name, who: who, models: "PutEvents", needs: needs})
	}
	put("planner publishes a launch as launcher", "planner", publishEvents(own, "joist/launcher", event.LaunchSettledType))
	for _, c := range []struct {
		who, as string
		fact    event.Type
	}{
		{"planner", "disruption", event.PlanMadeType}, {"disruption", "planner", event.DisruptionProposedType}, {"launcher", "catalog", event.LaunchSettledType},
		{"catalog", "interruption", event.InstancesListedType}, {"interruption", "launcher", event.InstanceGoneType},
	} {
		put(c.who+" publishes its fact as "+c.as, c.who, publishEvents(own, "joist/"+c.as, c.fact))
		put(c.who+" publishes its fact without a source", c.who, singleCall(newCall("events:PutEvents", bus(own), key("events:detail-type", string(c.fact)))))
		put(c.who+" publishes an event without a type", c.who, singleCall(newCall("events:PutEvents", bus(own), key("events:source", "joist/"+c.who))))
	}
	put("planner publishes a plan and launcher's fact in one call", "planner", singleCall(newCall("events:PutEvents", bus(own), key("events:source", "joist/planner"),
		key("events:detail-type", string(event.PlanMadeType), string(event.LaunchSettledType)))))
	put("interruption publishes a forged AWS notice", "interruption", publishEvents(own, "aws.ec2", "EC2 Spot Instance Interruption Warning"))
	put("planner publishes its plan on the other cluster's bus", "planner", publishEvents(beside+"-joist", "joist/planner", event.PlanMadeType))
	put("planner publishes its plan on the account's bus", "planner", publishEvents("default", "joist/planner", event.PlanMadeType))
	put("launcher publishes a forged AWS notice on the account's bus", "launcher", publishEvents("default", "aws.ec2", "EC2 Spot Instance Interruption Warning"))
	put("the other cluster's planner publishes a plan", "neighbour/planner", publishEvents(own, "joist/planner", event.PlanMadeType))
	put("the other cluster's catalog publishes an inventory", "neighbour/catalog", publishEvents(own, "joist/catalog", event.InstancesListedType))
	put("an administrator publishes a plan", "administrator", publishEvents(own, "joist/planner", event.PlanMadeType))
	put("an administrator of another account publishes a plan", "outsider", publishEvents(own, "joist/planner", event.PlanMadeType))
	put("an operator publishes a plan", "operator", publishEvents(own, "joist/planner", event.PlanMadeType))
	put("a replayer publishes a plan", "replayer", publishEvents(own, "joist/planner", event.PlanMadeType))
	for _, action := range []string{"PutRule", "PutTargets", "DeleteRule", "DisableRule", "RemoveTargets"} {
		out = append(out, call{name: "launcher calls " + action + " on the rule of spot notices", who: "launcher", models: action, needs: singleCall(newCall("events:"+action, "arn:aws:events:"+region+":"+account+":rule/"+cluster+"-joist-spot"))})
	}
	for _, who := range services() {
		out = append(out, call{name: who + " writes a forged fact to the audit log", who: who, models: "PutLogEvents", needs: singleCall(newCall("logs:PutLogEvents", factLog(cluster)))})
	}
	for _, c := range [][2]string{
		{"another rule of the account", "arn:aws:events:" + region + ":" + account + ":rule/any"},
		{"a rule of another account", "arn:aws:events:" + region + ":" + foreign + ":rule/" + cluster + "-joist/" + cluster + "-joist-audit"},
	} {
		out = append(out, call{name: c[0] + " writes a forged fact to the audit log", who: "aws/events.amazonaws.com", models: "EventBridge", needs: singleCall(newCall("logs:PutLogEvents", factLog(cluster), key("aws:SourceArn", c[1])))})
	}
	return asPrincipal(bussing, append(out,
		call{name: "catalog changes the policy of the bus", who: "catalog", models: "PutPermission", needs: singleCall(newCall("events:PutPermission", bus(own)))},
		call{name: "planner replays the archive", who: "planner", models: "StartReplay", needs: singleCall(newCall("events:StartReplay", "arn:aws:events:"+region+":"+account+":archive/"+own))},
		call{name: "an operator replays the archive", who: "operator", models: "StartReplay", needs: singleCall(newCall("events:StartReplay", "arn:aws:events:"+region+":"+account+":archive/"+own))})...)
}
