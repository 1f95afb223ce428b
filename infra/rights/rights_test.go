package rights_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

var update = flag.Bool("update", false, "write the golden files")

// checkGolden compares a document with its golden file.
func checkGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (try: go test ./rights -update, and read the difference):\n%s", path, diff)
	}
}

// documents returns all documents that the package creates for a cluster, by the name of
// the golden file.
func documents(t *testing.T, s rights.Scope) map[string]rights.Document {
	t.Helper()
	out := map[string]rights.Document{
		"bucket": rights.BucketPolicy(s), "bus": s.BusPolicy(), "audit": rights.AuditPolicy(s), "audit-dead": s.RuleDeadLetterPolicy(s.Plan.AuditDead),
		"trust-function": rights.TrustFunction(), "trust-nodes": s.TrustNodes(), "trust-scheduler": s.TrustScheduler(),
		"trust-pod":     s.TrustPod("joist", "joist-lifecycle"),
		"trust-account": rights.TrustAccount("arn:aws:iam::"+account+":oidc-provider/"+issuer, issuer, "joist", "joist-lifecycle"),
	}
	for _, service := range append(services(), topology.Scheduler) {
		d, err := s.ServicePolicy(service)
		if err != nil {
			t.Fatal(err)
		}
		out[service] = d
	}
	for _, service := range topology.ExternalServices {
		out[service+"-function"] = s.FunctionPolicy(service)
		if s.Plan.HasSharedFunctions() {
			// As many clusters as fit into a template, each with names of this length.
			out[service+"-shared"], out["trust-shared-"+service] = rights.SharedFunctionPolicy(service, slices.Repeat([]rights.Scope{s}, 6)...), s.TrustShared(service)
		}
	}
	for _, q := range s.Plan.Queues {
		out[q.Service+"-queue"], out[q.Service+"-dead"] = s.QueuePolicy(q), s.DeadLetterPolicy(q)
	}
	for name, write := range map[string]func() (rights.Document, error){"operator": s.OperatorPolicy, "replayer": s.ReplayerPolicy} {
		d, err := write()
		if err != nil {
			t.Fatal(err)
		}
		out[name] = d
	}
	return out
}

func TestPoliciesMatchGoldens(t *testing.T) {
	for name, d := range documents(t, scope(t, cluster)) {
		var indented bytes.Buffer
		if err := json.Indent(&indented, d.JSON(), "", "  "); err != nil {
			t.Fatal(err)
		}
		checkGolden(t, filepath.Join("testdata", name+".json"), append(indented.Bytes(), '\n'))
	}
}

// IAM's limits count characters without white space: 10,240 for all inline policies of a
// role together, and 6,144 for a managed policy, which the policies for people are.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
func TestPoliciesFitQuotas(t *testing.T) {
	all := longest(t)
	all["42 characters"] = scope(t, strings.Repeat("c", 42))
	for name, s := range all {
		all := documents(t, s)
		for document, d := range all {
			if document == "launcher" && name != "42 characters" {
				continue // The configuration sets the number of tags; the stack rejects policies that are too large.
			}
			limit := 10240
			if document == "operator" || document == "replayer" {
				limit = 6144
			}
			// A trust policy may have 2,048 characters by default.
			if strings.HasPrefix(document, "trust-") {
				limit = 2048
			}
			if size := len(d.JSON()) + len(all[document+"-function"].JSON()); size > limit {
				t.Errorf("%s: %s has %d characters of %d", name, document, size, limit)
			}
		}
	}
}

// longest returns scopes in which every name has its maximum length: one partition has
// the longest name, the others have the longest regions.
func longest(t *testing.T) map[string]rights.Scope {
	t.Helper()
	out := map[string]rights.Scope{}
	for _, functions := range []string{"", strings.Repeat("f", 45)} {
		plan, err := topology.NewPlan(topology.Cluster{
			Name: strings.Repeat("c", 100), Prefix: strings.Repeat("p", 42), Functions: functions, InterruptionQueue: strings.Repeat("q", 80),
		})
		if err != nil {
			t.Fatal(err)
		}
		for partition, region := range map[string]string{"aws": "ap-southeast-1", "aws-cn": "cn-northwest-1", "aws-us-gov": "us-gov-west-1"} {
			s := scope(t, cluster)
			s.Partition, s.Region, s.Plan, s.Bucket, s.Prefix = partition, region, plan, strings.Repeat("b", 63), plan.Cluster
			s.NodeRole = "arn:" + partition + ":iam::" + account + ":role/" + strings.Repeat("r", 64)
			out[partition+functions] = s
		}
	}
	return out
}

// Only the launcher may change EC2, by six actions.
func TestOnlyLauncherChangesEC2(t *testing.T) {
	s := scope(t, cluster)
	for _, service := range append(services(), topology.Scheduler) {
		d, err := s.ServicePolicy(service)
		if err != nil {
			t.Fatal(err)
		}
		var changes []string
		for _, action := range d.Writes() {
			if strings.HasPrefix(action, "ec2:") {
				changes = append(changes, action)
			}
		}
		var want []string
		if service == "launcher" {
			want = []string{"ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:CreateTags", "ec2:DeleteLaunchTemplate", "ec2:RunInstances", "ec2:TerminateInstances"}
		}
		if diff := cmp.Diff(want, changes); diff != "" {
			t.Errorf("%s changes other things in EC2 (-want +got):\n%s", service, diff)
		}
	}
}

// No permission to write has the resource "*", and no action has a wildcard.
func TestNoWriteOnAllResources(t *testing.T) {
	for name, d := range documents(t, scope(t, cluster)) {
		for _, s := range d.Statement {
			if s.Effect != "Allow" {
				continue
			}
			if slices.ContainsFunc(s.Action, func(a string) bool { return strings.Contains(a, "*") }) {
				t.Errorf("%s/%s allows %v", name, s.Sid, s.Action)
			}
			one := rights.Document{Statement: []rights.Statement{s}}
			if slices.Contains(s.Resource, "*") && len(one.Writes()) > 0 {
				t.Errorf("%s/%s allows %v on all resources", name, s.Sid, one.Writes())
			}
		}
	}
}

// Sids are unique in a document, and are alphanumeric.
func TestSids(t *testing.T) {
	other := scope(t, beside)
	all := documents(t, scope(t, cluster))
	all["shared bucket"] = rights.BucketPolicy(scope(t, cluster), other)
	for name, d := range all {
		seen := map[string]bool{}
		for _, s := range d.Statement {
			if seen[s.Sid] || !regexp.MustCompile(`^[A-Za-z0-9]+$`).MatchString(s.Sid) {
				t.Errorf("%s has the Sid %q twice or with invalid characters", name, s.Sid)
			}
			seen[s.Sid] = true
		}
	}
}

// If node classes name their profiles, no service may read or write IAM, except for
// passing the role.
func TestNamedProfilesNeedNoIAM(t *testing.T) {
	s := scope(t, cluster)
	s.Profiles = false
	d, err := s.ServicePolicy("launcher")
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range d.Actions() {
		if strings.HasPrefix(action, "iam:") && action != "iam:PassRole" {
			t.Errorf("the launcher may %s", action)
		}
	}
}

// The launcher may pass the role of Windows nodes to EC2 only, and only if it is set.
func TestWindowsNodeRole(t *testing.T) {
	for _, given := range []string{"", role("windows")} {
		s := joist(t, "Joist", deployed(t, func(s *rights.Scope) { s.WindowsNodeRole = given }))
		for to, want := range map[string]bool{"ec2.amazonaws.com": given != "", "lambda.amazonaws.com": false} {
			c := call{name: "pass the role of Windows nodes to " + to, who: "launcher", needs: singleCall(newCall("iam:PassRole", role("windows"), key("iam:PassedToService", to)))}
			if ok, refused := s.isAllowed(t, c); ok != want {
				t.Errorf("with the role %q: %s: allowed %t %s", given, c.name, ok, refused)
			}
		}
	}
}

// In China EC2 has another service name.
func TestChinaPartition(t *testing.T) {
	s := scope(t, cluster)
	s.Partition, s.Region, s.Replayers = "aws-cn", "cn-north-1", nil
	s.NodeRole = strings.Replace(s.NodeRole, "arn:aws:", "arn:aws-cn:", 1)
	for name, d := range documents(t, s) {
		if bytes.Contains(d.JSON(), []byte("arn:aws:")) && name != "trust-account" {
			t.Errorf("%s names another partition: %s", name, d.JSON())
		}
	}
	if trust := string(s.TrustNodes().JSON()); !strings.Contains(trust, `"ec2.amazonaws.com.cn"`) {
		t.Errorf("nodes in China cannot assume their role: %s", trust)
	}
}

// Names that would make policies too broad or wrong are rejected, with the fix.
func TestScopeIsChecked(t *testing.T) {
	for name, spoil := range map[string]func(*rights.Scope){
		"missing account":           func(s *rights.Scope) { s.Account = "" },
		"missing node role":         func(s *rights.Scope) { s.NodeRole = "" },
		"node role with a wildcard": func(s *rights.Scope) { s.NodeRole = "*" },
		"bucket with a wildcard":    func(s *rights.Scope) { s.Bucket = "joist-*" },
		"prefix with a wildcard":    func(s *rights.Scope) { s.Prefix = "*" },
		"missing bus":               func(s *rights.Scope) { s.Plan.Bus = "" },
		"unknown partition":         func(s *rights.Scope) { s.Partition = "aws-iso" },
		"replayers with a wildcard": func(s *rights.Scope) { s.Replayers = []string{"*"} },
		"replayer without an ARN":   func(s *rights.Scope) { s.Replayers = []string{"on-call"} },
		"missing plan":              func(s *rights.Scope) { s.Plan = topology.Plan{} },
	} {
		s := scope(t, cluster)
		spoil(&s)
		for _, write := range []func() (rights.Document, error){func() (rights.Document, error) { return s.ServicePolicy("launcher") }, s.OperatorPolicy, s.ReplayerPolicy} {
			if _, err := write(); !fault.Is(err, fault.Invalid) || fault.FindHint(err) == "" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := scope(t, cluster).ServicePolicy("controller"); !fault.Is(err, fault.Invalid) || fault.FindHint(err) == "" {
		t.Errorf("an unknown service returned %v", err)
	}
}

// ToMap returns the same document as JSON.
func TestMapMatchesJSON(t *testing.T) {
	d := scope(t, cluster).BusPolicy()
	back, err := json.Marshal(d.ToMap())
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if json.Unmarshal(back, &a) != nil || json.Unmarshal(d.JSON(), &b) != nil || !cmp.Equal(a, b) {
		t.Errorf("the map differs from the document: %s", back)
	}
}

// A launch may copy a snapshot without the cluster's tag only if it is listed.
func TestListedSnapshots(t *testing.T) {
	for listed, want := range map[string]bool{"": false, "snapshot-1": true, "snapshot-2": false, "snapshot-?": true, "*": true} {
		s := joist(t, "Joist", deployed(t, func(s *rights.Scope) {
			if listed != "" {
				s.Snapshots = []string{listed}
			}
		}))
		c := call{name: "a launch from an untagged snapshot", who: "launcher", needs: []need{newCall("ec2:CreateFleet", ec2("snapshot")), newCall("ec2:RunInstances", ec2("snapshot"))}}
		if ok, refused := s.isAllowed(t, c); ok != want {
			t.Errorf("listed snapshots %q: allowed %t %s", listed, ok, refused)
		}
	}
}
