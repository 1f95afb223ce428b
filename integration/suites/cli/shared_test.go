package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/account"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// sharedPlanner is the planner of two clusters, as named in the template "shared".
const sharedPlanner = "joist-all-joist-planner"

// reconfigure changes a function.
func (c *doctorAccount) reconfigure(name string, change func(f *account.Function)) {
	f := c.account.Functions[name]
	change(&f)
	c.account.Functions[name] = f
}

// TestDoctorChecksSharedFunctions checks that doctor finds shared functions by their event
// source mappings, and their roles and the bucket by their environment variables.
func TestDoctorChecksSharedFunctions(t *testing.T) {
	t.Parallel()
	c := open(t)
	c.share(t)
	if _, text, code := c.doctor(t); code != 0 || text != "No problems found in cluster prod.\n" {
		t.Errorf("code %d: %s", code, text)
	}
}

// TestDoctorNamesPermissionToReadRoles checks that doctor names iam:GetRole if it may not
// read the role by which it looks for a shared function, and no Lambda permission.
func TestDoctorNamesPermissionToReadRoles(t *testing.T) {
	t.Parallel()
	c := open(t)
	c.share(t)
	delete(c.account.Functions[sharedPlanner].Mappings, "arn:aws:sqs:eu-west-1:123456789012:prod-joist-planner")
	c.account.Denied["GetRole"] = true
	if _, text, _ := c.doctor(t, "-o", "json"); strings.Contains(text, "grant lambda:") || !strings.Contains(text, "grant iam:GetRole") {
		t.Error(text)
	}
}

// TestDoctorFindsProblemsOfSharedFunctions breaks one thing about a shared function.
func TestDoctorFindsProblemsOfSharedFunctions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name           string
		spoil          func(t *testing.T, c *doctorAccount)
		check, subject string
	}{
		{"visibility", func(_ *testing.T, c *doctorAccount) {
			c.reconfigure(sharedPlanner, func(f *account.Function) { f.TimeoutSeconds++ })
		}, "visibility-short", "queue/prod-joist-planner"},
		{"mapping of one cluster missing", func(_ *testing.T, c *doctorAccount) {
			delete(c.account.Functions[sharedPlanner].Mappings, "arn:aws:sqs:eu-west-1:123456789012:prod-joist-planner")
		}, "event-source-mapping-missing", "function/" + sharedPlanner},
		{"mapping disabled", func(_ *testing.T, c *doctorAccount) {
			c.account.Functions[sharedPlanner].Mappings["arn:aws:sqs:eu-west-1:123456789012:prod-joist-planner"] = "Disabled"
		}, "event-source-mapping-disabled", "function/" + sharedPlanner},
		{"the function is not configured for the cluster", func(_ *testing.T, c *doctorAccount) {
			recorded := c.account.Functions[sharedPlanner].Environment
			recorded[settings.Clusters] = strings.ReplaceAll(recorded[settings.Clusters], `/prod-joist-planner"`, `/test-joist-planner"`)
		}, "function-settings-missing", "function/" + sharedPlanner},
		{"trust", func(_ *testing.T, c *doctorAccount) {
			r := c.account.Roles["prod-joist-planner"]
			r.Trust = strings.Replace(r.Trust, "planner@prod", "planner@staging", 1)
			c.account.Roles["prod-joist-planner"] = r
		}, "trust-function", "role/prod-joist-planner"},
		{"role of the cluster missing", func(_ *testing.T, c *doctorAccount) { delete(c.account.Roles, "prod-joist-planner") }, "role-missing", "role/prod-joist-planner"},
		{"role of the function missing", func(_ *testing.T, c *doctorAccount) { delete(c.account.Roles, sharedPlanner) }, "role-missing", "role/" + sharedPlanner},
		{"the function may not assume the role", func(t *testing.T, c *doctorAccount) {
			t.Helper()
			c.denyAction(t, sharedPlanner, "sts:AssumeRole", false)
		}, "role-permissions-missing", "role/" + sharedPlanner},
		{"the function may not receive from the queue", func(t *testing.T, c *doctorAccount) {
			t.Helper()
			c.denyAction(t, sharedPlanner, "sqs:ReceiveMessage", true)
		}, "role-permissions-missing", "role/" + sharedPlanner},
		{"permission of the cluster's role missing", func(t *testing.T, c *doctorAccount) {
			t.Helper()
			c.denyAction(t, "prod-joist-planner", "s3:PutObject", false)
		}, "role-permissions-missing", "role/prod-joist-planner"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := open(t)
			c.share(t)
			test.spoil(t, c)
			out, text, code := c.doctor(t, "-o", "json")
			if code != 2 || len(out.Skipped) > 0 || len(out.Findings) != 1 || fmt.Sprint(out.Findings[0].Check, out.Findings[0].Subject) != fmt.Sprint(test.check, test.subject) {
				t.Errorf("code %d, want %s of %s: %s", code, test.check, test.subject, text)
			}
		})
	}
}

// TestDoctorChecksPollers checks that doctor reports no problem if processes poll the queues
// instead of functions.
func TestDoctorChecksPollers(t *testing.T) {
	t.Parallel()
	c := open(t)
	clear(c.account.Functions)
	if _, text, code := c.doctor(t); code != 0 {
		t.Errorf("code %d: %s", code, text)
	}
}
