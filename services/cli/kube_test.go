package cli

import (
	"context"
	"testing"

	"github.com/spf13/pflag"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// TestNamespaceFlags: -n is the namespace of a pod in all commands that have it, and the namespace of the
// controller has one flag.
func TestNamespaceFlags(t *testing.T) {
	commands, pods, controllers := newRoot(Env{}).Commands(), 0, 0
	for len(commands) > 0 {
		cmd := commands[0]
		commands = append(commands[1:], cmd.Commands()...)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if isPods := f.Name == podNamespace; isPods != (f.Shorthand == "n") || isPods && f.Usage != "namespace of the pod" {
				t.Errorf("%s has -%s, --%s: %s", cmd.CommandPath(), f.Shorthand, f.Name, f.Usage)
			}
		})
		if cmd.Flags().Lookup(podNamespace) != nil {
			pods++
		}
		if cmd.Flags().Lookup(controllerNamespace) != nil {
			controllers++
		}
	}
	if pods != 2 || controllers < 8 {
		t.Errorf("%d commands about pods, and %d that read the controller's namespace", pods, controllers)
	}
}

// TestFindJoistNamespace: the flag wins over the environment, and that over the Deployment.
func TestFindJoistNamespace(t *testing.T) {
	deployed := []byte(`{"items":[{"metadata":{"name":"joist-lifecycle","namespace":"autoscaling"}}]}`)
	for _, tt := range []struct {
		name, given string
		environ     []string
		answer      []byte
		err         error
		want        string
	}{
		{"flag", "a", []string{"JOIST_NAMESPACE=b"}, deployed, nil, "a"},
		{"environment", "", []string{"JOIST_NAMESPACE=b"}, deployed, nil, "b"},
		{"Deployment", "", nil, deployed, nil, "autoscaling"},
		{"not installed", "", nil, []byte(`{"items":[]}`), nil, "joist"},
		{"forbidden", "", nil, nil, fault.F("reading", fault.Denied, "forbidden"), "joist"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			read := func(context.Context, string) ([]byte, error) { return tt.answer, tt.err }
			if got := (Env{Environ: tt.environ}).findJoistNamespace(t.Context(), read, tt.given); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
