package terraform

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// resource is a Terraform resource.
type resource struct {
	// kind and name are its address.
	kind, name string
	// body has the arguments. Nested blocks are blocks.
	body map[string]any
	// dependsOn are addresses.
	dependsOn []string
}

func (r resource) address() string { return r.kind + "." + r.name }

// blocks are the nested blocks of one type.
type blocks []map[string]any

// fields are the properties of a resource that are not translated yet.
type fields struct {
	of  string
	all map[string]any
}

// take removes a property and returns it; nil if the resource does not have it.
func (f fields) take(name string) any {
	value := f.all[name]
	delete(f.all, name)
	return value
}

// move removes properties and returns them as arguments, from pairs of names.
func (f fields) move(pairs ...string) map[string]any {
	out := map[string]any{}
	for pair := range slices.Chunk(pairs, 2) {
		if value := f.take(pair[0]); value != nil {
			out[pair[1]] = value
		}
	}
	return out
}

// inside returns the fields of a nested property.
func (f fields) inside(name string) fields {
	object, _ := f.take(name).(map[string]any)
	return fields{f.of + "." + name, maps.Clone(object)}
}

// items returns the fields of the items of a list.
func (f fields) items(name string) []fields {
	list, _ := f.take(name).([]any)
	out := make([]fields, len(list))
	for i, item := range list {
		object, _ := item.(map[string]any)
		out[i] = fields{fmt.Sprintf("%s.%s[%d]", f.of, name, i), maps.Clone(object)}
	}
	return out
}

// requireEmpty fails if a property is left, which has no translation.
func (f fields) requireEmpty() error {
	if len(f.all) > 0 {
		return fmt.Errorf("%s: no translation of %s", f.of, strings.Join(sortedKeys(f.all), ", "))
	}
	return nil
}

// mapping translates the properties of a type. It returns the resource first, then the parts that
// are separate in Terraform.
type mapping func(f fields, r resource) ([]resource, error)

// mappings are all types.
var mappings = map[string]mapping{
	"AWS::CloudWatch::Alarm":           mapAlarm,
	"AWS::CloudWatch::Dashboard":       mapDashboard,
	"AWS::EKS::AccessEntry":            mapPlain("ClusterName", "cluster_name", "PrincipalArn", "principal_arn", "Type", "type"),
	"AWS::EKS::PodIdentityAssociation": mapPlain("ClusterName", "cluster_name", "Namespace", "namespace", "RoleArn", "role_arn", "ServiceAccount", "service_account"),
	"AWS::Events::Archive":             mapArchive,
	"AWS::Events::EventBus":            mapPlain("Description", "description", "Name", "name"),
	"AWS::Events::EventBusPolicy":      mapBusPolicy,
	"AWS::Events::Rule":                mapRule,
	"AWS::IAM::InstanceProfile":        mapProfile,
	"AWS::IAM::ManagedPolicy":          mapManagedPolicy,
	"AWS::IAM::Role":                   mapRole,
	"AWS::Lambda::EventSourceMapping":  mapSource,
	"AWS::Lambda::Function":            mapFunction,
	"AWS::Logs::LogGroup":              mapPlain("LogGroupName", "name", "RetentionInDays", "retention_in_days"),
	"AWS::Logs::ResourcePolicy":        mapLogPolicy,
	"AWS::S3::Bucket":                  mapBucket,
	"AWS::S3::BucketPolicy":            mapBucketPolicy,
	"AWS::SQS::Queue":                  mapQueue,
	"AWS::SQS::QueuePolicy":            mapQueuePolicy,
	"AWS::Scheduler::Schedule":         mapSchedule,
	"AWS::Scheduler::ScheduleGroup":    mapPlain("Name", "name"),
}

// mapPlain returns the mapping of a type without nested properties.
func mapPlain(pairs ...string) mapping {
	return func(f fields, r resource) ([]resource, error) {
		maps.Copy(r.body, f.move(pairs...))
		return []resource{r}, nil
	}
}

// mapResources translates a template.
func mapResources(template synthesized, prefix string, static bool) ([]resource, error) {
	names, err := nameResources(template, prefix)
	if err != nil {
		return nil, err
	}
	t := translator{template, names, static}
	policies := map[string][]string{} // of a role
	var all []resource
	for _, id := range sortedKeys(template.Resources) {
		r := template.Resources[id]
		properties, err := t.translate(r.Properties)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		f := fields{id, properties.(map[string]any)}
		kind, name, _ := strings.Cut(names[id], ".")
		one := resource{kind: kind, name: name, body: map[string]any{}}
		if r.Condition != "" {
			return nil, fmt.Errorf("%s has a condition, which has no translation", id)
		}
		if f.take("Tags") != nil {
			one.body["tags"] = interpolate("local.tags")
		}
		if err := mapRetention(r, &one); err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		for _, other := range r.DependsOn {
			one.dependsOn = append(one.dependsOn, names[other])
		}
		made, err := mappings[r.Type](f, one)
		if err == nil {
			err = f.requireEmpty()
		}
		if err != nil {
			return nil, err
		}
		if r.Type == "AWS::IAM::Role" {
			for _, policy := range made[1:] {
				policies[names[id]] = append(policies[names[id]], policy.address())
			}
		}
		all = append(all, made...)
	}
	addPolicyDependencies(all, policies)
	return all, nil
}

// mapRetention translates the deletion policy of a resource with data.
func mapRetention(from *synthesizedResource, r *resource) error {
	switch {
	case from.DeletionPolicy == "" && from.UpdateReplacePolicy == "":
		return nil
	case from.DeletionPolicy != "RetainExceptOnCreate" || from.UpdateReplacePolicy != "Retain":
		return fmt.Errorf("the deletion policy %q has no translation", from.DeletionPolicy)
	case r.kind == "aws_cloudwatch_log_group":
		r.body["skip_destroy"] = interpolate("var.retain_data")
	case r.kind == "aws_s3_bucket":
		r.body["force_destroy"] = interpolate("!var.retain_data")
	default:
		return fmt.Errorf("%s cannot be retained", r.kind)
	}
	return nil
}

// addPolicyDependencies makes each resource that uses a role wait for the role's policies,
// which are resources of their own in Terraform. Lambda checks them when it creates an event
// source mapping.
func addPolicyDependencies(all []resource, policies map[string][]string) {
	for i := range all {
		if slices.Contains([]string{"aws_iam_role_policy", "aws_iam_role_policy_attachment"}, all[i].kind) {
			continue
		}
		text := fmt.Sprint(all[i].body) + strings.Join(all[i].dependsOn, opening)
		for _, role := range sortedKeys(policies) {
			if strings.Contains(text, opening+role+".") || slices.Contains(all[i].dependsOn, role) {
				all[i].dependsOn = append(all[i].dependsOn, policies[role]...)
			}
		}
		slices.Sort(all[i].dependsOn)
		all[i].dependsOn = slices.Compact(all[i].dependsOn)
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
