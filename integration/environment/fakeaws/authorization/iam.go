package authorization

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/infra/evaluator"
)

// iam returns the requests of calls on instance profiles. Adding a role to a profile
// passes the role.
func (g *Authorizer) iam(body []byte) ([]evaluator.Request, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	action := form.Get("Action")
	switch action {
	case "ListInstanceProfiles":
		return one("iam:"+action, g.Place.arn("iam", "instance-profile/*"), nil), nil
	case "GetRole", "ListAttachedRolePolicies":
		return one("iam:"+action, g.role(form.Get("RoleName")), nil), nil
	case "SimulatePrincipalPolicy":
		return one("iam:"+action, form.Get("PolicySourceArn"), nil), nil
	}
	name := form.Get("InstanceProfileName")
	// The ARN has the path if the profile exists.
	asked, path := map[string][]string{}, form.Get("Path")
	if p, err := g.Cloud.Profile(context.Background(), name); err == nil {
		maps.Copy(asked, tagged("ResourceTag", p.Tags))
		path = p.Path
	}
	path = strings.TrimPrefix(cmp.Or(path, "/"), "/")
	maps.Copy(asked, tagged("RequestTag", pairs(form, "Tags.member.")))
	out := one("iam:"+action, g.Place.arn("iam", "instance-profile/"+path+name), asked)
	if action == "AddRoleToInstanceProfile" {
		out = append(out, g.pass(form.Get("RoleName")))
	}
	return out, nil
}

// sts returns the requests of STS calls. Assuming a role requires its trust policy and
// session name.
func (g *Authorizer) sts(body []byte) ([]evaluator.Request, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	switch action := form.Get("Action"); action {
	case "GetCallerIdentity":
		return nil, nil // GetCallerIdentity needs no permission.
	case "AssumeRole":
		return one("sts:"+action, form.Get("RoleArn"), map[string][]string{"sts:RoleSessionName": {form.Get("RoleSessionName")}}), nil
	default:
		return nil, fmt.Errorf("sts:%s is not supported by the guard", action)
	}
}

// role returns a role's ARN. Service-linked roles have a path.
func (g *Authorizer) role(name string) string {
	if name == "AWSServiceRoleForEC2Spot" {
		name = "aws-service-role/spot.amazonaws.com/" + name
	}
	return g.Place.arn("iam", "role/"+name)
}

// pass returns iam:PassRole of a role to EC2.
func (g *Authorizer) pass(role string) evaluator.Request {
	return evaluator.Request{
		Action: "iam:PassRole", Resource: g.Place.arn("iam", "role/"+role),
		Context: map[string][]string{"iam:PassedToService": {"ec2.amazonaws.com"}},
	}
}

// pairs returns numbered Key and Value fields as a map.
func pairs(form url.Values, prefix string) map[string]string {
	out := map[string]string{}
	for n := 1; form.Has(prefix + strconv.Itoa(n) + ".Key"); n++ {
		at := prefix + strconv.Itoa(n)
		out[form.Get(at+".Key")] = form.Get(at + ".Value")
	}
	return out
}

func keys(tags map[string]string) []string { return slices.Sorted(maps.Keys(tags)) }
