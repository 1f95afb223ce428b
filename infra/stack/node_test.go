package stack_test

import (
	"slices"
	"strings"
	"testing"
)

// passedRoles returns the ARNs of the roles that services may pass.
func (in synthesis) passedRoles(t *testing.T) []any {
	t.Helper()
	var passed []any
	for _, r := range in.ofType(t, "AWS::IAM::Role") {
		for _, p := range list(r.Properties["Policies"]) {
			for _, s := range statements(p.(map[string]any)["PolicyDocument"]) {
				if slices.Contains(list(s["Action"]), any("iam:PassRole")) {
					passed = append(passed, list(s["Resource"])...)
				}
			}
		}
	}
	return passed
}

// IAM checks iam:PassRole against the ARN of the role, which has its path. Names have no path,
// and neither has the ARN in aws-auth.
func TestNodeRolePath(t *testing.T) {
	const name = "KarpenterNodeRole-prod"
	in, arn := synth(t, "terraform"), "arn:aws:iam::"+place.Account+":role/eks/"+name
	if passed := in.passedRoles(t); !slices.Equal(passed, []any{arn}) {
		t.Errorf("services may pass %s instead of %s", passed, arn)
	}
	for _, profile := range in.ofType(t, "AWS::IAM::InstanceProfile") {
		if roles := profile.text("Roles"); roles != "["+name+"]" {
			t.Errorf("the instance profile has the role %s", roles)
		}
	}
	for output, want := range map[string]string{"NodeIamRoleName": name, "NodeIamRoleArn": arn, "AwsAuth": "--arn " + strings.Replace(arn, "eks/", "", 1) + " "} {
		if got, err := in.Output(output); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s is %q, %v", output, got, err)
		}
	}
}

// The existing role of Windows nodes gets an access entry of its own type, and may be passed.
func TestWindowsNodeRole(t *testing.T) {
	in, arn := synth(t, "cloudformation"), "arn:aws:iam::"+place.Account+":role/eks/windows"
	entries := by("PrincipalArn", in.ofType(t, "AWS::EKS::AccessEntry"))
	if windows := entries[arn]; len(entries) != 1 || windows.text("Type") != "EC2_WINDOWS" || windows.text("ClusterName") != "prod" {
		t.Errorf("access entries %+v", entries)
	}
	if passed := in.passedRoles(t); len(passed) != 2 || !slices.Contains(passed, any(arn)) {
		t.Errorf("services may pass %s", passed)
	}
}

// The command for aws-auth authorizes Linux and Windows nodes.
func TestAwsAuthOfWindowsNodes(t *testing.T) {
	for _, name := range []string{"oidc", "terraform"} {
		got, err := synth(t, name).Output("AwsAuth")
		for _, group := range []string{"system:bootstrappers", "system:nodes", "eks:kube-proxy-windows"} {
			if err != nil || !strings.Contains(got, " --group "+group) {
				t.Errorf("%s lacks %s: %q, %v", name, group, got, err)
			}
		}
	}
}
