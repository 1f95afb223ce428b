package rights_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// page shows the attacks that succeed in at least one system, data all attacks.
var (
	page = filepath.Join("..", "..", "deploy", "docs", "attacks.md")
	data = filepath.Join("..", "..", "deploy", "docs", "attacks.csv")
)

// result is an attack, the systems in which it succeeds, and the systems in which it has
// a target.
type result struct {
	attack
	through []bool
	target  []bool
}

// targets reports whether a cluster with one controller has the attacked resource. It has
// one queue and the account's default bus, and no bucket, functions or policies of people.
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

// currentSystem does not change the fixture's scope.
func currentSystem(*rights.Scope) {}

func systems(t *testing.T) []system {
	t.Helper()
	return append([]system{
		joist(t, "Joist", deployed(t, currentSystem)),
		joist(t, "Joist, any tag", deployed(t, func(s *rights.Scope) { s.NodeTags = []string{"*"} })),
		joist(t, "Joist, shared functions", deployed(t, sharedSystem)),
	}, karpenterSystems(t)...)
}

// No attack succeeds against Joist's policies. The page and the data compare them with
// other policies.
func TestAttacksAreDenied(t *testing.T) {
	all := systems(t)
	var results []result
	seen := map[string]bool{}
	for _, a := range attacks() {
		if seen[a.name] {
			t.Errorf("two attacks have the name %q", a.name)
		}
		seen[a.name] = true
		r := result{attack: a}
		for i, s := range all {
			ours := i < 3
			there := ours || targets(a)
			ok, _ := s.isAllowed(t, a.call)
			r.through, r.target = append(r.through, ok && there), append(r.target, there)
			if ok && i == 0 {
				t.Errorf("%s is allowed", a.name)
			}
		}
		results = append(results, r)
	}
	for _, a := range preparatoryCalls() {
		if ok, _ := all[0].isAllowed(t, a.call); ok {
			t.Errorf("%s is allowed", a.name)
		}
	}
	if len(results) < 200 {
		t.Errorf("there are only %d attacks", len(results))
	}
	checkGolden(t, page, []byte(writePage(all, results, listPermissions(t))))
	checkGolden(t, data, writeData(t, all, results))
}

// The launcher may make the calls that other services are denied, so the calls are valid.
func TestAttacksAreValidRequests(t *testing.T) {
	s := joist(t, "Joist", deployed(t, currentSystem))
	turned := 0
	for _, a := range attacksByOthers() {
		a.who = "launcher"
		if ok, refused := s.isAllowed(t, a.call); !ok {
			t.Errorf("%s, by the launcher: %s", a.name, refused)
		}
		turned++
	}
	if turned < 30 {
		t.Errorf("only %d attacks were tried with the launcher's role", turned)
	}
}

// count returns how many attacks of a kind succeed in a system. With apart it counts only
// attacks that a single process cannot deny.
func count(results []result, kind string, system int, apart bool) int {
	n := 0
	for _, r := range results {
		if (kind == "" || r.kind == kind) && r.through[system] && (!apart || r.apart) {
			n++
		}
	}
	return n
}

// outcome returns the result of an attack in a system, as the page and the data show it.
func (r result) outcome(system int) string {
	switch {
	case !r.target[system]:
		return "no target"
	case !r.through[system]:
		return "refused"
	case r.apart && system > 2:
		return "single role"
	}
	return "through"
}

// writeData returns every attack with its result in every system, as CSV.
func writeData(t *testing.T, all []system, results []result) []byte {
	t.Helper()
	header := []string{"group", "attack", "call"}
	for _, s := range all {
		header = append(header, s.title)
	}
	rows := [][]string{header}
	for _, r := range results {
		row := []string{r.kind, r.name, r.models}
		for i := range all {
			row = append(row, r.outcome(i))
		}
		rows = append(rows, row)
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// writePage returns the page: explanation, counts, and for each group the attacks that
// succeed in some system.
func writePage(all []system, results []result, holdings string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", introduction)
	b.WriteString("## How many go through\n\n| group | attacks | with a target in Karpenter |")
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
	fmt.Fprintf(&b, "\nThe same tests check that the %d calls that Joist makes are allowed, that each action of a role is needed by one of them, and that\neach condition refuses one of the attacks (`infra/rights/necessity_test.go`).\n", len(legitimate()))
	b.WriteString(holdings)
	for _, kind := range kinds {
		writeGroup(&b, kind, all, results)
	}
	return b.String()
}

// writeGroup writes a group's table: one row for each set of systems, with the attacks
// that succeed in exactly these systems.
func writeGroup(b *strings.Builder, kind string, all []system, results []result) {
	var sets []string
	names, refused := map[string][]string{}, 0
	for _, r := range results {
		if r.kind != kind {
			continue
		}
		var set []string
		suffix := ""
		for i, s := range all {
			switch r.outcome(i) {
			case "single role":
				suffix = " (single role)"
				fallthrough
			case "through":
				set = append(set, s.title)
			}
		}
		if set == nil {
			refused++
			continue
		}
		title := strings.Join(set, "; ") + suffix
		if names[title] == nil {
			sets = append(sets, title)
		}
		names[title] = append(names[title], r.name)
	}
	fmt.Fprintf(b, "\n## %s\n\n", kind)
	if len(sets) == 0 {
		fmt.Fprintf(b, "All %d attacks are refused in every column.\n", refused)
		return
	}
	b.WriteString("| through in | attacks |\n|---|---|\n")
	for _, set := range sets {
		fmt.Fprintf(b, "| %s | %s |\n", set, strings.Join(mergeNames(names[set]), "<br>"))
	}
}

// mergeNames merges names that differ only in the service, or only after a colon.
func mergeNames(names []string) []string {
	type group struct{ services, endings []string }
	var order []string
	groups := map[string]*group{}
	for _, name := range names {
		head, ending, _ := strings.Cut(name, ": ")
		service, rest, _ := strings.Cut(head, " ")
		if !slices.Contains(services(), service) || ending != "" {
			service, rest = "", head
		}
		if groups[rest] == nil {
			groups[rest] = &group{}
			order = append(order, rest)
		}
		if g := groups[rest]; ending != "" {
			g.endings = append(g.endings, ending)
		} else {
			g.services = append(g.services, service)
		}
	}
	out := make([]string, 0, len(order))
	for _, rest := range order {
		g := groups[rest]
		switch {
		case g.endings != nil:
			rest += ": " + strings.Join(g.endings, ", ")
		case slices.Equal(g.services, pureServices()):
			rest = "each service but the launcher " + rest
		case len(g.services) == len(services()):
			rest = "each service " + rest
		case len(g.services) > 1:
			rest = strings.Join(g.services, " or ") + " " + rest
		case g.services[0] != "":
			rest = g.services[0] + " " + rest
		}
		out = append(out, rest)
	}
	return out
}

const introduction = `# Attacks on AWS permissions

An attacker has taken over a service, another cluster of the account, or another account: which calls to AWS do the policies allow? One attack is
one call with every request that AWS authorises for it (a launch has about 20). **Through** means that the policies allow every request.

| column | policies |
|---|---|
| Joist | the CDK app's, with the tag keys of node classes listed (` + "`nodeTags`" + `) |
| Joist, any tag | the CDK app's default: node classes may set any tag, as with Karpenter |
| Joist, shared functions | two clusters with one function for each service (` + "`sharedFunctions`" + `) |
| Karpenter v1.14 | the six policies of its getting-started guide's CloudFormation template, and the trust that the guide's eksctl command creates |
| Terraform tutorial (v1) | a blog post of 2025-07-07 on installing Karpenter on EKS, with one policy |
| CloudFormation tutorial (v0.26) | a blog post of 2022-09-22 on Karpenter, with a role and a queue from an early template |

How to read the comparison:

- Karpenter's one controller must be allowed to do what Joist refuses to six of its seven services. These attacks are marked *single role* and
  counted in brackets. They show a difference of structure, not a mistake in the policy.
- Karpenter has no bus, no bucket and one queue. Attacks without a target there are not counted for it. Having fewer targets is an advantage
  that this page does not measure.
- A shared function holds the roles of both clusters. ` + "`TestSharedFunctionAttacks`" + ` checks that it can do nothing more than
  those roles allow, except for receiving and deleting messages of both clusters.
- Where the trust of a Pod Identity role has no conditions, only the permissions to pass the role and to create an association protect it.

` + "`infra/evaluator`" + ` evaluates identity, resource and trust policies by AWS' published rules, and the patterns of the bus's rules. Service control
policies, permissions boundaries and endpoint policies can only take rights away; none is assumed. Nothing was run against AWS. The synthesized
templates for one and for two clusters give the same results but for one: clusters that share a bucket can list the names of each other's objects,
not read them.

The tables leave out attacks that are refused everywhere; [attacks.csv](attacks.csv) lists every attack.
` + "`go test ./rights -run TestAttacks -update`" + ` in ` + "`infra`" + ` writes both files; without ` + "`-update`" + ` the test fails when they differ from the policies.
`

// listPermissions returns a table that counts the permissions of each role.
func listPermissions(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n## What each role may do\n\nEach cell counts AWS actions; brackets count the writing actions. The size is in characters without white space; AWS allows a role 10,240.\n\n" +
		"| role | actions | of EC2 | of IAM | of S3 | of SQS | of EventBridge | size |\n|---|---|---|---|---|---|---|---|\n")
	documents := deployed(t, currentSystem)
	for _, service := range append(services(), topology.Scheduler) {
		d := documents[cluster+"/"+service]
		fmt.Fprintf(&b, "| %s | %s |", service, countOutcomes(d, ""))
		for _, prefix := range []string{"ec2:", "iam:", "s3:", "sqs:", "events:"} {
			fmt.Fprintf(&b, " %s |", countOutcomes(d, prefix))
		}
		fmt.Fprintf(&b, " %d |\n", len(d.JSON()))
	}
	return b.String()
}

func countOutcomes(d rights.Document, prefix string) string {
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
