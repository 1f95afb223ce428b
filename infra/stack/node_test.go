package stack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// IAM checks iam:PassRole against the ARN of the role, which has its path. Names have no path,
// and neither has the ARN in aws-auth.
func TestNodeRolePath(t *testing.T) {
	const name = "KarpenterNodeRole-prod"
	in, arn := synth(t, "terraform"), "arn:aws:iam::"+place.Account+":role/eks/"+name
	passed := false
	for _, r := range in.ofType(t, "AWS::IAM::Role") {
		for _, p := range list(r.Properties["Policies"]) {
			for _, s := range statements(p.(map[string]any)["PolicyDocument"]) {
				if slices.Contains(list(s["Action"]), any("iam:PassRole")) {
					passed = passed || fmt.Sprint(s["Resource"]) == arn
				}
			}
		}
	}
	if !passed {
		t.Errorf("no service may pass %s", arn)
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
