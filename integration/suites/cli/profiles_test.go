package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/services/cli"
)

// migrate runs joist migrate --check on the installation.
func (c *doctorAccount) migrate(t *testing.T) (stdout string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	env := c.doctorEnv(&out, &errs)
	env.Args = []string{"migrate", "--check", "-o", "json"}
	if code = cli.Run(t.Context(), env); code == cli.ExitError {
		t.Fatalf("%s%s", out.String(), errs.String())
	}
	return out.String(), code
}

// TestMigrateListsProfiles: with the permissions of an operator, joist migrate --check lists the instance profiles that
// Karpenter created, below its path and in the status of a class, and whether Joist adopts each.
func TestMigrateListsProfiles(t *testing.T) {
	t.Parallel()
	c := open(t)
	region := c.Config().Region
	c.account.ProfilePaths, c.account.ProfileTags = map[string]string{}, map[string]map[string]string{}
	for name, path := range map[string]string{
		"prod_current": "/karpenter/" + region + "/prod/uid-1/", "prod_legacy": "/",
		"prod_deleted": "/karpenter/" + region + "/prod/uid-gone/", "other_cluster": "/karpenter/" + region + "/other/uid-1/",
	} {
		c.account.Profiles[name], c.account.ProfilePaths[name] = "KarpenterNodeRole-prod", path
		c.account.ProfileTags[name] = map[string]string{"kubernetes.io/cluster/prod": "owned"}
	}
	c.kube[classes+"?limit=500"] = list(
		`{"metadata":{"name":"default","uid":"uid-1"},"spec":{"role":"KarpenterNodeRole-prod"},"status":{"instanceProfile":"prod_current"}}`,
		`{"metadata":{"name":"old","uid":"uid-2"},"spec":{"role":"KarpenterNodeRole-prod"},"status":{"instanceProfile":"prod_legacy"}}`,
	)
	text, _ := c.migrate(t)
	var report struct {
		InstanceProfiles []struct {
			Name, Path, Role, NodeClass, Detail string
			Adopted                             bool
		}
		Assumptions []string
	}
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"prod_current": "default adopted", "prod_deleted": " kept", "prod_legacy": "old kept"}
	for _, p := range report.InstanceProfiles {
		is := p.NodeClass + " kept"
		if p.Adopted {
			is = p.NodeClass + " adopted"
		}
		if want[p.Name] != is || p.Role != "KarpenterNodeRole-prod" || p.Detail == "" {
			t.Errorf("%+v, want %q", p, want[p.Name])
		}
		delete(want, p.Name)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v of %s", want, text)
	}
	if got := strings.Join(report.Assumptions, "; "); strings.Contains(got, "iam:") {
		t.Errorf("assumed although IAM answered: %s", got)
	}
}
