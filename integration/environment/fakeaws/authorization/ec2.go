package authorization

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/infra/evaluator"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// ec2 returns the requests of an EC2 call. Describing calls have no resources; launches
// have many.
func (g *Authorizer) ec2(body []byte) ([]evaluator.Request, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	action := form.Get("Action")
	switch {
	case strings.HasPrefix(action, "Describe"):
		return one("ec2:"+action, "*", nil), nil
	case action == "CreateLaunchTemplate":
		return g.creation(action, specified(form), "launch-template"), nil
	case action == "DeleteLaunchTemplate":
		return one("ec2:"+action, g.Place.arn("ec2", "launch-template/"+form.Get("LaunchTemplateName")), g.templateTags(form.Get("LaunchTemplateName"))), nil
	case action == "TerminateInstances", action == "RebootInstances":
		var out []evaluator.Request
		for _, id := range numbered(form, "InstanceId.") {
			out = append(out, one("ec2:"+action, g.Place.arn("ec2", "instance/"+id), g.instanceTags(id))...)
		}
		return out, nil
	case action == "CreateTags":
		return g.tags(form), nil
	case action == "CreateFleet":
		return g.launch(action, form, form.Get("LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName")), nil
	case action == "RunInstances":
		return g.launch(action, form, form.Get("LaunchTemplate.LaunchTemplateName")), nil
	default:
		return nil, fmt.Errorf("ec2:%s is not supported by the guard", action)
	}
}

// creation returns the requests for creating tagged resources, which include tagging at
// creation.
func (g *Authorizer) creation(action string, tags map[string]map[string]string, kinds ...string) []evaluator.Request {
	var out []evaluator.Request
	for _, kind := range kinds {
		arn := g.Place.arn("ec2", kind+"/*")
		out = append(out, one("ec2:"+action, arn, tagged("RequestTag", tags[kind]))...)
		if len(tags[kind]) > 0 {
			asked := tagged("RequestTag", tags[kind])
			asked["ec2:CreateAction"] = []string{action}
			out = append(out, one("ec2:CreateTags", arn, asked)...)
		}
	}
	return out
}

// launch returns the requests of CreateFleet or RunInstances: the created resources, the
// existing resources used, and the instances' role. A fleet launches with RunInstances,
// and its caller needs those permissions, too.
func (g *Authorizer) launch(action string, form url.Values, template string) []evaluator.Request {
	tags := specified(form)
	t, _ := g.Cloud.Template(template)
	for _, set := range t.TagSets {
		if tags[set.Resource] == nil {
			tags[set.Resource] = map[string]string{}
		}
		maps.Copy(tags[set.Resource], set.Tags)
	}
	var out []evaluator.Request
	if action == "CreateFleet" {
		out = append(g.creation(action, tags, "fleet"), g.createdResources(action, tags, form)...)
	}
	for _, by := range slices.Compact([]string{action, "RunInstances"}) {
		out = append(out, one("ec2:"+by, g.Place.arn("ec2", "launch-template/"+template), g.templateTags(template))...)
		for _, arn := range g.ingredients(t, form) {
			out = append(out, one("ec2:"+by, arn, nil)...)
		}
	}
	out = append(out, g.createdResources("RunInstances", tags, form)...)
	if p, err := g.Cloud.Profile(context.Background(), t.InstanceProfile); err == nil && p.Role != "" {
		out = append(out, g.pass(p.Role))
	}
	return out
}

// createdResources returns the requests for the resources that a launch creates.
func (g *Authorizer) createdResources(action string, tags map[string]map[string]string, form url.Values) []evaluator.Request {
	kinds := []string{"instance", "volume", "network-interface"}
	if form.Get("TargetCapacitySpecification.DefaultTargetCapacityType") == cloud.Spot {
		kinds = append(kinds, "spot-instances-request")
	}
	return g.creation(action, tags, kinds...)
}

// ingredients returns the ARNs of the existing resources that a launch uses.
func (g *Authorizer) ingredients(t cloud.Template, form url.Values) []string {
	var out []string
	add := func(kind, id string) {
		if arn := g.Place.arn("ec2", kind+"/"+id); id != "" && !slices.Contains(out, arn) {
			out = append(out, arn)
		}
	}
	add("image", t.ImageID)
	for _, device := range t.BlockDevices {
		add("snapshot", device.Snapshot)
	}
	for _, id := range t.SecurityGroups {
		add("security-group", id)
	}
	for key, values := range form {
		switch {
		case strings.HasSuffix(key, ".SubnetId"):
			add("subnet", values[0])
		case strings.HasSuffix(key, ".ImageId"):
			add("image", values[0])
		}
	}
	if t.Placement != nil && t.Placement.Group+t.Placement.GroupID != "" {
		add("placement-group", t.Placement.Group+t.Placement.GroupID)
	}
	if t.Reservation != nil {
		add("capacity-reservation", t.Reservation.ID)
	}
	slices.Sort(out)
	return out
}

// tags returns the requests of CreateTags on existing resources.
func (g *Authorizer) tags(form url.Values) []evaluator.Request {
	var out []evaluator.Request
	for _, id := range numbered(form, "ResourceId.") {
		kind, asked := "instance", g.instanceTags(id)
		switch {
		case strings.HasPrefix(id, "vol-"):
			kind = "volume"
		case strings.HasPrefix(id, "eni-"):
			kind = "network-interface"
		}
		maps.Copy(asked, tagged("RequestTag", pairs(form, "Tag.")))
		out = append(out, one("ec2:CreateTags", g.Place.arn("ec2", kind+"/"+id), asked)...)
	}
	return out
}

func (g *Authorizer) instanceTags(id string) map[string][]string {
	r, ok := g.Cloud.Record(id)
	if !ok {
		return map[string][]string{}
	}
	return tagged("ResourceTag", r.Tags)
}

func (g *Authorizer) templateTags(name string) map[string][]string {
	t, _ := g.Cloud.Template(name)
	return tagged("ResourceTag", t.Tags)
}

// specified returns TagSpecification.N by kind of resource.
func specified(form url.Values) map[string]map[string]string {
	out := map[string]map[string]string{}
	for n := 1; form.Has("TagSpecification." + strconv.Itoa(n) + ".ResourceType"); n++ {
		at := "TagSpecification." + strconv.Itoa(n)
		out[form.Get(at+".ResourceType")] = pairs(form, at+".Tag.")
	}
	return out
}

func numbered(form url.Values, prefix string) []string {
	var out []string
	for n := 1; form.Has(prefix + strconv.Itoa(n)); n++ {
		out = append(out, form.Get(prefix+strconv.Itoa(n)))
	}
	return out
}
