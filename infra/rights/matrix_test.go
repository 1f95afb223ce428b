package rights_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// page is the table that people read.
var page = filepath.Join("..", "..", "deploy", "docs", "attacks.md")

// result is an attack and which systems let it through. One that has no target in a
// system says nothing of that.
type result struct {
	attack
	through []bool
	target  []bool
}

// targets reports whether what is attacked is there with one controller: it has one
// queue, EventBridge's own bus, no bucket, no functions, and no people's policies.
func targets(a attack) bool {
	if a.kind == sharing || slices.Contains([]string{"operator", "replayer", "scheduler", "neighbour/lifecycle"}, a.who) || strings.HasPrefix(a.who, "aws/scheduler") {
		return false
	}
	return !slices.ContainsFunc(a.needs, func(n need) bool {
		_, function := n.context["lambda:SourceFunctionArn"]
		if function || n.resource == placeholder+"scheduler" {
			return true
		}
		for _, prefix := range []string{"arn:aws:s3:", "arn:aws:lambda:", "arn:aws:logs:", bus(""), "arn:aws:events:" + region + ":" + account + ":archive/", queue(cluster + "-joist-")} {
			if strings.HasPrefix(n.resource, prefix) && n.resource != bus("default") {
				return true
			}
		}
		return false
	})
}

// asIs leaves a scope as the fixture has it.
func asIs(*rights.Scope) {}

func systems(t *testing.T) []system {
	t.Helper()
	return append([]system{
		joist(t, "Joist", deployed(t, asIs)),
		joist(t, "Joist, any tag", deployed(t, func(s *rights.Scope) { s.NodeTags = []string{"*"} })),
		joist(t, "Joist, shared functions", deployed(t, together)),
	}, incumbents(t)...)
}

// No attack goes through, whoever is broken into; and the page says so, beside what
// the policies of others let through.
func TestAttacksAreRefused(t *testing.T) {
	all := systems(t)
	var results []result
	seen := map[string]bool{}
	for _, a := range attacks() {
		if seen[a.name] {
			t.Errorf("two attacks are called %q", a.name)
		}
		seen[a.name] = true
		r := result{attack: a}
		for i, s := range all {
			ours := i < 3
			there := ours || targets(a)
			ok, _ := s.goes(t, a.call)
			r.through, r.target = append(r.through, ok && there), append(r.target, there)
			if ok && i == 0 {
				t.Errorf("%s goes through", a.name)
			}
		}
		results = append(results, r)
	}
	for _, a := range formalities() {
		if ok, _ := all[0].goes(t, a.call); ok {
			t.Errorf("%s goes through", a.name)
		}
	}
	if len(results) < 200 {
		t.Errorf("there are %d attacks", len(results))
	}
	golden(t, page, []byte(write(all, results, holdings(t))))
}

// A matrix that could not fail would prove nothing: what is refused to one is allowed
// to the one whose work it is.
func TestAttacksWouldGoThroughForTheRightOne(t *testing.T) {
	s := joist(t, "Joist", deployed(t, asIs))
	turned := 0
	for _, a := range attacksByOthers() {
		a.who = "launcher"
		if ok, refused := s.goes(t, a.call); !ok {
			t.Errorf("%s, by the launcher: %s", a.name, refused)
		}
		turned++
	}
	if turned < 30 {
		t.Errorf("%d were turned", turned)
	}
}

// count is how many of a kind go through a system; apart counts those alone that one
// process cannot refuse.
func count(results []result, kind string, system int, apart bool) int {
	n := 0
	for _, r := range results {
		if (kind == "" || r.kind == kind) && r.through[system] && (!apart || r.apart) {
			n++
		}
	}
	return n
}

func write(all []system, results []result, holdings string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", introduction)
	b.WriteString("## How many go through\n\n| kind | attacks | of these, with a target at one controller |")
	for _, s := range all {
		fmt.Fprintf(&b, " %s |", s.title)
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(all)) + "\n")
	var kinds []string
	for _, r := range results {
		if len(kinds) == 0 || kinds[len(kinds)-1] != r.kind {
			kinds = append(kinds, r.kind)
		}
	}
	line := func(title, kind string) {
		of, there := 0, 0
		for _, r := range results {
			if kind == "" || r.kind == kind {
				of++
				if r.target[len(all)-1] {
					there++
				}
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %d |", title, of, there)
		for i := range all {
			fmt.Fprintf(&b, " %d", count(results, kind, i, false))
			if apart := count(results, kind, i, true); apart > 0 {
				fmt.Fprintf(&b, " (%d)", apart)
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	for _, kind := range kinds {
		line(kind, kind)
	}
	line("all", "")
	fmt.Fprintf(&b, "\nBeside these, the %d calls that Joist makes are judged in the same way, and go through; each action that a role has is needed by one of them, and\neach condition keeps one of the attacks out (`infra/rights/necessity_test.go`).\n", len(legitimate()))
	b.WriteString(holdings)
	for _, kind := range kinds {
		fmt.Fprintf(&b, "\n## %s\n\n| attack | models |", kind)
		for _, s := range all {
			fmt.Fprintf(&b, " %s |", s.title)
		}
		b.WriteString("\n|---|---|" + strings.Repeat("---|", len(all)) + "\n")
		for _, r := range results {
			if r.kind != kind {
				continue
			}
			fmt.Fprintf(&b, "| %s | %s |", r.name, r.models)
			for i, through := range r.through {
				switch {
				case !r.target[i]:
					b.WriteString("  |")
				case through && r.apart && i > 2:
					b.WriteString(" (through) |")
				case through:
					b.WriteString(" **through** |")
				default:
					b.WriteString(" – |")
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

const introduction = `# What an attacker gets

Somebody has broken into one of the services, into another cluster of the account, or into another account. What may they do to
this cluster, and to others? Each row is one call to AWS, as all the requests that AWS would authorise for it (a launch is some twenty:
each resource that is made or used, its tags, and the role that is passed). ` + "`infra/evaluator`" + ` judges each by AWS' published rules and by the
policies as they are deployed, and an entry on the bus by the patterns of its rules as well; nothing of this was run against AWS. The same calls are judged by the templates that the CDK app writes, for one
cluster and for two in one stack, with the same outcome but for one: clusters that share a bucket may list the names of each other's objects, and
read none. The page is written by
` + "`go test ./rights -run TestAttacks -update`" + ` in ` + "`infra`" + `, and a test fails when it is not what the policies say.

**through** means that the policies allow the whole call. "Joist" is with the tag keys of node classes listed (` + "`nodeTags`" + ` of the CDK app); "any tag" is
as the app deploys it until they are, because node classes that work with Karpenter have any. "shared functions" is a stack in which both clusters
have one function of each service (` + "`sharedFunctions`" + `): the function works on the queues of both and takes the role of the cluster whose message it
handles, so that whoever has broken into it has both roles. He is in one place, and its row says what he may do to the other cluster; a test holds
every such row to what that cluster's own role may do by right, but for receiving and deleting on its clusters' queues, which is the function's own
work. Roles themselves stay as they are with a function for each cluster.

Read the comparison with care:

- Karpenter is one controller, which thinks, launches and terminates under one role: what Joist refuses to six of its seven services, that
  controller must be allowed, so for it each such row is the same break-in. These are written (through), and counted in brackets. They are
  a difference of structure, not a mistake in Karpenter's policy.
- Karpenter has no bus, no bucket and one queue. Attacks on what it does not have are left empty in its column, and count for nobody.
  That it has less to attack is its advantage, and this page does not measure it.
- A service's role can be had by Pod Identity only by who may pass the role and make an association. Where a role's trust has no conditions,
  those two rights are the only lock.
- Karpenter's column is the six policies of the CloudFormation template in its v1.14 guide, with the trust that its guide's tool gives to the
  controller's role; the seeds' are the Terraform of 000 and 001, written for v1, and the CloudFormation of 003, written for v0.26. Policies that
  people have tightened since are theirs, and better.
- Organisations' service control policies, permissions boundaries and endpoint policies take rights away from all columns alike. None is assumed.
`

// holdings is what each role has, counted.
func holdings(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n## What each role may do\n\nActions in AWS; in brackets those that change something. Sizes are characters without white space, of 10,240 that a role's policies may\nhave together.\n\n" +
		"| role | actions | of EC2 | of IAM | of S3 | of SQS | of EventBridge | size |\n|---|---|---|---|---|---|---|---|\n")
	documents := deployed(t, asIs)
	for _, service := range append(services(), topology.Scheduler) {
		d := documents[cluster+"/"+service]
		fmt.Fprintf(&b, "| %s | %s |", service, tally(d, ""))
		for _, prefix := range []string{"ec2:", "iam:", "s3:", "sqs:", "events:"} {
			fmt.Fprintf(&b, " %s |", tally(d, prefix))
		}
		fmt.Fprintf(&b, " %d |\n", len(d.JSON()))
	}
	return b.String()
}

func tally(d rights.Document, prefix string) string {
	begins := func(list []string) (n int) {
		for _, action := range list {
			if strings.HasPrefix(action, prefix) {
				n++
			}
		}
		return n
	}
	return fmt.Sprintf("%d (%d)", begins(d.Actions()), begins(d.Writes()))
}
