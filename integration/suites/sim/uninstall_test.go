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

// uninstallation is a cluster from which Joist is removed.
type uninstallation struct {
	t *testing.T
	*embedded.EmbeddedCluster
	// stopped is whether Joist's pods are deleted: time passes and no service runs.
	stopped bool
}

// startCluster returns a cluster with five pods on nodes of one NodePool, whose node class names a role.
func startCluster(t *testing.T) *uninstallation {
	t.Helper()
	w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i", "c6i"}})
	if err != nil {
		t.Fatal(err)
	}
	class, web, _ := nodeClassAndDeployment(w)
	if err := w.Apply(t.Context(), class, strictNodePool(), web); err != nil {
		t.Fatal(err)
	}
	l := &uninstallation{t: t, EmbeddedCluster: w}
	l.waitFor("nodes", 10*time.Minute, func() bool {
		claims := listObjects[*karpenter.NodeClaim](l, cluster.NodeClaims)
		return len(claims) > 0 && claims[0].Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized)
	})
	return l
}

func listObjects[T cluster.Object](l *uninstallation, kind cluster.Kind) []T {
	l.t.Helper()
	objects, err := cluster.List[T](l.t.Context(), l.Kube, kind)
	if err != nil {
		l.t.Fatal(err)
	}
	return objects
}

// waitFor advances the time until a condition is true.
func (l *uninstallation) waitFor(what string, limit time.Duration, until func() bool) {
	l.t.Helper()
	if l.stopped && !until() {
		l.t.Fatalf("%s: Joist is gone, and nothing does it", what)
	}
	if held, err := l.Run(context.Background(), limit, until); err != nil || !held {
		l.t.Fatalf("%s: it does not hold after %s (%v)", what, limit, err)
	}
}

// deleteAll deletes all objects of a kind, as kubectl does.
func deleteAll[T cluster.Object](l *uninstallation, kind cluster.Kind) {
	l.t.Helper()
	for _, o := range listObjects[T](l, kind) {
		if err := l.Kube.Delete(l.t.Context(), kind, cluster.KeyOf(o), o.GetUID()); err != nil {
			l.t.Fatal(err)
		}
	}
}

func hasNone[T cluster.Object](l *uninstallation, kind cluster.Kind) func() bool {
	return func() bool { return len(listObjects[T](l, kind)) == 0 }
}

// commandEffects are the commands of the page, by how they begin.
var commandEffects = []struct {
	command string
	run     func(l *uninstallation) error
}{
	{`kubectl annotate nodepools --all joist.sh/approve="delete 100%"`, func(l *uninstallation) error {
		for _, pool := range listObjects[*karpenter.NodePool](l, cluster.NodePools) {
			l.Kube.ChangeObject(cluster.NodePools, cluster.KeyOf(pool), func(o cluster.Object) {
				o.SetAnnotations(map[string]string{"joist.sh/approve": "delete 100%"})
			})
		}
		return nil
	}},
	{"kubectl delete nodepools --all", func(l *uninstallation) error {
		deleteAll[*karpenter.NodePool](l, cluster.NodePools)
		return nil
	}},
	{"kubectl wait --for=delete nodeclaims --all", func(l *uninstallation) error {
		l.waitFor("no NodeClaim", 30*time.Minute, hasNone[*karpenter.NodeClaim](l, cluster.NodeClaims))
		return nil
	}},
	{"kubectl delete ec2nodeclasses --all", func(l *uninstallation) error {
		deleteAll[*karpenter.EC2NodeClass](l, cluster.NodeClasses)
		l.waitFor("no EC2NodeClass", 10*time.Minute, hasNone[*karpenter.EC2NodeClass](l, cluster.NodeClasses))
		return nil
	}},
	{"aws iam list-instance-profiles-for-role", func(*uninstallation) error { return nil }},
	{"helm uninstall joist", func(l *uninstallation) error { l.stopped = true; return nil }},
	// The stack has the nodes' role, and a profile of its own, which is deleted before it.
	{"(cd infra && npx aws-cdk@2.1148.1 destroy", func(l *uninstallation) error {
		if err := l.Cloud.DeleteProfile(l.t.Context(), l.AWS.Profile); err != nil {
			return err
		}
		return l.Cloud.DeleteRole(l.AWS.Role)
	}},
}

// pageCommands returns the commands of the first sh block under a heading of the page.
func pageCommands(t *testing.T, heading string) []string {
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

func runCommand(l *uninstallation, command string) error {
	l.t.Helper()
	for _, step := range commandEffects {
		if strings.HasPrefix(command, step.command) {
			return step.run(l)
		}
	}
	l.t.Fatalf("the test does not know the command %q", command)
	return nil
}

// The commands of the page, in order, leave no object that Joist created, and the role of the nodes can be deleted
// with the stack.
func TestUninstall(t *testing.T) {
	l := startCluster(t)
	for _, command := range pageCommands(t, "Remove") {
		if err := runCommand(l, command); err != nil {
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

// A stack that is deleted before the node classes keeps its role, because instance profiles use it.
func TestUninstallInTheWrongOrder(t *testing.T) {
	l := startCluster(t)
	for _, command := range pageCommands(t, "Remove") {
		if strings.HasPrefix(command, "kubectl delete ec2nodeclasses") {
			continue
		}
		err := runCommand(l, command)
		if destroys := strings.Contains(command, "destroy"); destroys != fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", command, err)
		}
	}
}
