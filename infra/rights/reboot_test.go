package rights_test

import (
	"slices"
	"testing"

	"github.com/joist-autoscaler/joist/infra/rights"
)

// With RebootForRepair the launcher may reboot the cluster's instances, and no attack succeeds but the reboot itself.
// Each condition of the permission prevents an attack.
func TestRebootForRepair(t *testing.T) {
	const own = "launcher calls RebootInstances on its own instance"
	allowed := deployed(t, func(s *rights.Scope) { s.RebootForRepair = true })
	list := slices.DeleteFunc(attacks(), func(a attack) bool { return a.name == own })
	if len(list) != len(attacks())-1 {
		t.Fatalf("%q is not an attack", own)
	}
	s := joist(t, "Joist, reboots", allowed)
	for _, a := range list {
		if ok, _ := s.isAllowed(t, a.call); ok {
			t.Errorf("%s is allowed", a.name)
		}
	}
	old := mergeTags(launchedTags(cluster), "eks:eks-cluster-name", "-")
	for name, has := range map[string]map[string]string{"an own instance": launchedTags(cluster), "an instance that Karpenter launched before v1": old} {
		c := call{name: "reboot " + name, who: "launcher", needs: singleCall(newCall("ec2:RebootInstances", ec2("instance"), resourceTags(has)))}
		if ok, refused := s.isAllowed(t, c); !ok {
			t.Errorf("%s is refused: %s", c.name, refused)
		}
		if ok, _ := joist(t, "Joist", deployed(t, currentSystem)).isAllowed(t, c); ok {
			t.Errorf("%s is allowed without the setting", c.name)
		}
	}
	whose := cluster + "/launcher"
	i := slices.IndexFunc(allowed[whose].Statement, func(s rights.Statement) bool { return s.Sid == "RebootOwn" })
	if i < 0 {
		t.Fatal("the launcher has no statement RebootOwn")
	}
	for _, m := range withoutCondition(allowed, whose, i, allowed[whose].Statement[i]) {
		if !allowsAttack(t, m, whose, list) {
			t.Errorf("without %s every attack is still denied", m.name)
		}
	}
}
