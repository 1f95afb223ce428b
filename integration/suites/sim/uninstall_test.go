package sim_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// leaving is a cluster from which Joist is removed.
type leaving struct {
	t *testing.T
	*embedded.World
	// stopped says that Joist's pods are gone: time passes and no service acts.
	stopped bool
}

// inhabited has five pods on nodes of one NodePool, whose node class names a role.
func inhabited(t *testing.T) *leaving {
	t.Helper()
	w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i", "c6i"}})
	if err != nil {
		t.Fatal(err)
	}
	class, web, _ := threeCores(w)
	if err := w.Apply(t.Context(), class, choosy(), web); err != nil {
		t.Fatal(err)
	}
	l := &leaving{t: t, World: w}
	l.await("nodes", 10*time.Minute, func() bool {
		claims := list[*karpenter.NodeClaim](l, cluster.NodeClaims)
		return len(claims) > 0 && claims[0].Status.Conditions.True(karpenter.ConditionTypeInitialized)
	})
	return l
}

func list[T cluster.Object](l *leaving, kind cluster.Kind) []T {
	l.t.Helper()
	objects, err := cluster.List[T](l.t.Context(), l.Kube, kind)
	if err != nil {
		l.t.Fatal(err)
	}
	return objects
}

// await lets time pass until something holds.
func (l *leaving) await(what string, limit time.Duration, until func() bool) {
	l.t.Helper()
	if l.stopped && !until() {
		l.t.Fatalf("%s: Joist is gone, and nothing does it", what)
	}
	if held, err := l.Run(context.Background(), limit, until); err != nil || !held {
		l.t.Fatalf("%s: it does not hold after %s (%v)", what, limit, err)
	}
}

// removed deletes all objects of a kind, as kubectl does.
func removed[T cluster.Object](l *leaving, kind cluster.Kind) {
	l.t.Helper()
	for _, o := range list[T](l, kind) {
		if err := l.Kube.Delete(l.t.Context(), kind, cluster.KeyOf(o), o.GetUID()); err != nil {
			l.t.Fatal(err)
		}
	}
}

func gone[T cluster.Object](l *leaving, kind cluster.Kind) func() bool {
	return func() bool { return len(list[T](l, kind)) == 0 }
}

// steps are the commands of the page, by how they begin.
var steps = []struct {
	command string
	run     func(l *leaving) error
}{
	{`kubectl annotate nodepools --all joist.sh/approve="delete 100%"`, func(l *leaving) error {
		for _, pool := range list[*karpenter.NodePool](l, cluster.NodePools) {
			l.Kube.Change(cluster.NodePools, cluster.KeyOf(pool), func(o cluster.Object) {
				o.SetAnnotations(map[string]string{"joist.sh/approve": "delete 100%"})
			})
		}
		return nil
	}},
	{"kubectl delete nodepools --all", func(l *leaving) error {
		removed[*karpenter.NodePool](l, cluster.NodePools)
		return nil
	}},
	{"kubectl wait --for=delete nodeclaims --all", func(l *leaving) error {
		l.await("no NodeClaim", 30*time.Minute, gone[*karpenter.NodeClaim](l, cluster.NodeClaims))
		return nil
	}},
	{"kubectl delete ec2nodeclasses --all", func(l *leaving) error {
		removed[*karpenter.EC2NodeClass](l, cluster.NodeClasses)
		l.await("no EC2NodeClass", 10*time.Minute, gone[*karpenter.EC2NodeClass](l, cluster.NodeClasses))
		return nil
	}},
	{"aws iam list-instance-profiles-for-role", func(*leaving) error { return nil }},
	{"helm uninstall joist", func(l *leaving) error { l.stopped = true; return nil }},
	// The stack has the nodes' role, and a profile of its own, which is deleted before it.
	{"(cd infra && npx aws-cdk@2.1148.1 destroy", func(l *leaving) error {
		if err := l.Cloud.DeleteProfile(l.t.Context(), l.AWS.Profile); err != nil {
			return err
		}
		return l.Cloud.DeleteRole(l.AWS.Role)
	}},
}

// onPage are the commands of the first block of sh under a heading of the page.
func onPage(t *testing.T, heading string) []string {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/docs/uninstall.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "## "+heading+"\n")
	_, block, begins := strings.Cut(section, "```sh\n")
	block, _, ends := strings.Cut(block, "```")
	if !found || !begins || !ends {
		t.Fatalf("the page has no commands under %s", heading)
	}
	var commands []string
	for line := range strings.Lines(block) {
		if !strings.HasPrefix(line, "export ") {
			commands = append(commands, strings.TrimSpace(line))
		}
	}
	return commands
}

func run(l *leaving, command string) error {
	l.t.Helper()
	for _, step := range steps {
		if strings.HasPrefix(command, step.command) {
			return step.run(l)
		}
	}
	l.t.Fatalf("the test does not know the command %q", command)
	return nil
}

// The page's commands in their order leave nothing behind that Joist has made, and the
// nodes' role can be deleted with the stack.
func TestUninstall(t *testing.T) {
	l := inhabited(t)
	for _, command := range onPage(t, "Remove") {
		if err := run(l, command); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
	for _, r := range l.Cloud.Records() {
		if r.State != cloud.Terminated {
			t.Errorf("the instance %s is %s", r.ID, r.State)
		}
	}
	profiles, err := l.Cloud.ListProfiles(t.Context(), "/karpenter/")
	if err != nil || len(profiles) > 0 {
		t.Errorf("instance profiles are left: %v (%v)", profiles, err)
	}
	templates, err := l.Cloud.Templates(t.Context(), nil)
	if err != nil || len(templates) > 0 {
		t.Errorf("launch templates are left: %v (%v)", templates, err)
	}
}

// A stack that is deleted while node classes stand keeps its role: their instance profiles
// hold it.
func TestUninstallInTheWrongOrder(t *testing.T) {
	l := inhabited(t)
	for _, command := range onPage(t, "Remove") {
		if strings.HasPrefix(command, "kubectl delete ec2nodeclasses") {
			continue
		}
		err := run(l, command)
		if destroys := strings.Contains(command, "destroy"); destroys != fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", command, err)
		}
	}
}
