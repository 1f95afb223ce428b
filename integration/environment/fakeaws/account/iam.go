package account

import (
	"cmp"
	"encoding/xml"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
)

const (
	iamVersion   = "2010-05-08"
	iamNamespace = "https://iam.amazonaws.com/doc/2010-05-08/"
)

// operations are the supported IAM operations. Each returns its answer, or the name that
// does not exist.
var operations = map[string]func(s *Service, form query.Form) (answer any, unknown string){
	"GetRole": (*Service).role, "ListAttachedRolePolicies": (*Service).attached,
	"GetInstanceProfile": (*Service).profile, "ListInstanceProfiles": (*Service).profiles, "SimulatePrincipalPolicy": (*Service).simulate,
}

func (s *Service) iam(w http.ResponseWriter, r *http.Request) {
	form, err := query.Read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	action := form.Get("Action")
	if s.Denied[action] {
		query.Refuse(w, iamNamespace, http.StatusForbidden, "AccessDenied", "not authorized to perform: iam:"+action)
		return
	}
	if one, other := apart(form.List("ActionNames.member")); one != "" {
		query.Refuse(w, iamNamespace, http.StatusBadRequest, "InvalidInput", "Invalid Input Actions: ["+one+"] and ["+other+"] require different authorization information.")
		return
	}
	answer, unknown := operations[action](s, form)
	if unknown != "" {
		query.Refuse(w, iamNamespace, http.StatusNotFound, "NoSuchEntity", unknown+" cannot be found.")
		return
	}
	query.Write(w, http.StatusOK, answer)
}

type role struct {
	Name  string `xml:"RoleName"`
	ARN   string `xml:"Arn"`
	Trust string `xml:"AssumeRolePolicyDocument,omitempty"`
}

func (s *Service) role(form query.Form) (answer any, unknown string) {
	return s.ofRole(form, func(name string, found Role) any {
		return struct {
			XMLName xml.Name `xml:"GetRoleResponse"`
			Role    role     `xml:"GetRoleResult>Role"`
		}{Role: role{name, found.ARN, url.QueryEscape(found.Trust)}}
	})
}

// ofRole answers an operation on the role that the form names.
func (s *Service) ofRole(form query.Form, answer func(name string, found Role) any) (answered any, unknown string) {
	name := form.Get("RoleName")
	found, there := s.Roles[name]
	if !there {
		return nil, "The role with name " + name
	}
	return answer(name, found), ""
}

type policy struct {
	Name string `xml:"PolicyName"`
	ARN  string `xml:"PolicyArn"`
}

func (s *Service) attached(form query.Form) (answer any, unknown string) {
	return s.ofRole(form, func(_ string, found Role) any {
		var list []policy
		for _, p := range found.Policies {
			list = append(list, policy{p, "arn:aws:iam::aws:policy/" + p})
		}
		return struct {
			XMLName  xml.Name `xml:"ListAttachedRolePoliciesResponse"`
			Policies []policy `xml:"ListAttachedRolePoliciesResult>AttachedPolicies>member"`
		}{Policies: list}
	})
}

// profile is an instance profile in an answer. IAM's list has no tags.
type profile struct {
	Name  string `xml:"InstanceProfileName"`
	Path  string `xml:"Path"`
	Roles []role `xml:"Roles>member"`
	Tags  []tag  `xml:"Tags>member,omitempty"`
}

type tag struct{ Key, Value string }

func (s *Service) newProfile(name string) profile {
	out := profile{Name: name, Path: cmp.Or(s.ProfilePaths[name], "/")}
	if held := s.Profiles[name]; held != "" {
		out.Roles = []role{{Name: held, ARN: s.Roles[held].ARN}}
	}
	return out
}

func (s *Service) profile(form query.Form) (answer any, unknown string) {
	name := form.Get("InstanceProfileName")
	if _, there := s.Profiles[name]; !there {
		return nil, "Instance Profile " + name
	}
	out := s.newProfile(name)
	for key, value := range s.ProfileTags[name] {
		out.Tags = append(out.Tags, tag{key, value})
	}
	return struct {
		XMLName xml.Name `xml:"GetInstanceProfileResponse"`
		Profile profile  `xml:"GetInstanceProfileResult>InstanceProfile"`
	}{Profile: out}, ""
}

func (s *Service) profiles(form query.Form) (answer any, unknown string) {
	var out []profile
	for _, name := range slices.Sorted(maps.Keys(s.Profiles)) {
		if one := s.newProfile(name); strings.HasPrefix(one.Path, form.Get("PathPrefix")) {
			out = append(out, one)
		}
	}
	return struct {
		XMLName  xml.Name  `xml:"ListInstanceProfilesResponse"`
		Profiles []profile `xml:"ListInstanceProfilesResult>InstanceProfiles>member"`
	}{Profiles: out}, ""
}

// alone are actions that the simulator does not evaluate together with others in one
// call. IAM does not document them; these are of the kinds that users have reported:
// assuming a role, passing a role, and creating a resource together with reading one.
var alone = map[string]bool{
	"sts:AssumeRole": true, "iam:PassRole": true, "ec2:CreateFleet": true, "ec2:RunInstances": true, "ec2:CreateLaunchTemplate": true, "iam:CreateInstanceProfile": true,
}

// apart returns two actions that cannot be evaluated in one call, if there are any.
func apart(actions []string) (one, other string) {
	for i, action := range actions {
		if alone[action] && len(actions) > 1 {
			return action, actions[(i+1)%len(actions)]
		}
	}
	return "", ""
}

type judged struct {
	Action   string `xml:"EvalActionName"`
	Resource string `xml:"EvalResourceName"`
	Decision string `xml:"EvalDecision"`
}

// simulate evaluates every action on every resource and returns one page of results.
func (s *Service) simulate(form query.Form) (answer any, unknown string) {
	arn := form.Get("PolicySourceArn")
	if _, there := s.Roles[path.Base(arn)]; !there {
		return nil, "The role with ARN " + arn
	}
	context := map[string][]string{}
	for _, entry := range form.Each("ContextEntries.member") {
		context[entry.Get("ContextKeyName")] = entry.List("ContextKeyValues.member")
	}
	var all []judged
	for _, action := range form.List("ActionNames.member") {
		for _, resource := range form.List("ResourceArns.member") {
			all = append(all, judged{action, resource, s.Judge(arn, action, resource, context)})
		}
	}
	from := form.Int("Marker")
	to := min(len(all), from+pageMax)
	out := struct {
		XMLName   xml.Name `xml:"SimulatePrincipalPolicyResponse"`
		Results   []judged `xml:"SimulatePrincipalPolicyResult>EvaluationResults>member"`
		Truncated bool     `xml:"SimulatePrincipalPolicyResult>IsTruncated"`
		Marker    string   `xml:"SimulatePrincipalPolicyResult>Marker,omitempty"`
	}{Results: all[from:to]}
	if to < len(all) {
		out.Truncated, out.Marker = true, strconv.Itoa(to)
	}
	return out, ""
}

// pageMax is small, so that callers must paginate.
const pageMax = 100
