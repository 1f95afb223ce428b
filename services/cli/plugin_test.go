package cli_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/services/cli"
)

// TestPluginNamesItself checks the name of the command in usage, examples and errors when
// kubectl starts it as a plugin.
func TestPluginNamesItself(t *testing.T) {
	for _, tt := range []struct {
		program, want string
		args          []string
	}{
		{"/home/me/.krew/bin/kubectl-joist", "Usage:\n  kubectl joist budgets {", []string{"budgets", "--help"}},
		{`kubectl-joist.exe`, "  kubectl joist budgets -f ", []string{"budgets", "--help"}},
		{"kubectl-joist", "Try: kubectl joist budgets -f nodepool.yaml", []string{"budgets"}},
		{"kubectl-joist", "kubectl joist: --dry-run and --yes exclude each other", []string{"replay", "--yes", "--dry-run"}},
		{"kubectl-joist", "Try: kubectl joist budgets --help", []string{"budgets", "--wrong"}},
		{"/usr/local/bin/kubectl_complete-joist", "plan\t", []string{"pl"}},
		{"kubectl_complete-joist", "yaml", []string{"report", "-o", "y"}},
		{"./joist", "Usage:\n  joist budgets {", []string{"budgets", "--help"}},
		{"./joist", "Try: joist budgets -f nodepool.yaml", []string{"budgets"}},
	} {
		var out bytes.Buffer
		cli.Run(context.Background(), cli.Env{Program: tt.program, Args: tt.args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s %s does not print %q:\n%s", tt.program, strings.Join(tt.args, " "), tt.want, out.String())
		}
	}
}
