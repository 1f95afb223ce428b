package controlplane

import (
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
)

func TestArguments(t *testing.T) {
	l := layout{assets: "/assets", dir: "/run", logs: "/logs", ports: ports{apiserver: 6443, etcd: 2379, etcdPeer: 2380}}
	var out strings.Builder
	for _, program := range []struct {
		name string
		args []string
	}{
		{etcd, l.etcdArgs()},
		{apiserver, l.apiserverArgs()},
		{controllerManager, l.controllerManagerArgs()},
		{scheduler, l.schedulerArgs()},
		{kwok, l.kwokArgs()},
	} {
		out.WriteString(program.name + "\n\t" + strings.Join(program.args, "\n\t") + "\n")
	}
	golden.Compare(t, "testdata/args.golden", out.String())
}

func TestArgumentsWithoutRBAC(t *testing.T) {
	args := strings.Join(layout{noRBAC: true}.apiserverArgs(), "\n")
	if !strings.Contains(args, "--authorization-mode=AlwaysAllow\n") || strings.Contains(args, "RBAC") {
		t.Errorf("arguments without RBAC:\n%s", args)
	}
}
