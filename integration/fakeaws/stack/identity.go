package stack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// identity is what other resources can say of one.
type identity struct {
	ref        string
	attributes map[string]string
}

// naming is how resources of a type are called.
type naming struct {
	// property has the name that the template may choose.
	property string
	// arn is the ARN's service and resource, with %s for the name; global ones have no region.
	arn    string
	global bool
	// url says that Ref is the queue's URL, byARN that it is the ARN.
	url, byARN bool
}

// names are the types whose names matter here.
var names = map[string]naming{
	"AWS::SQS::Queue":                  {property: "QueueName", arn: "sqs:%s", url: true},
	"AWS::Events::EventBus":            {property: "Name", arn: "events:event-bus/%s"},
	"AWS::Events::Rule":                {property: "Name", arn: "events:rule/%s"},
	"AWS::Events::Archive":             {property: "ArchiveName", arn: "events:archive/%s"},
	"AWS::Scheduler::ScheduleGroup":    {property: "Name", arn: "scheduler:schedule-group/%s"},
	"AWS::Scheduler::Schedule":         {property: "Name", arn: "scheduler:schedule/%s"},
	"AWS::Lambda::Function":            {property: "FunctionName", arn: "lambda:function:%s"},
	"AWS::Lambda::EventSourceMapping":  {arn: "lambda:event-source-mapping:%s"},
	"AWS::Logs::LogGroup":              {property: "LogGroupName", arn: "logs:log-group:%s:*"},
	"AWS::CloudWatch::Alarm":           {property: "AlarmName", arn: "cloudwatch:alarm:%s"},
	"AWS::CloudWatch::Dashboard":       {property: "DashboardName", arn: "cloudwatch:dashboard/%s"},
	"AWS::SNS::Topic":                  {property: "TopicName", arn: "sns:%s", byARN: true},
	"AWS::IAM::Role":                   {property: "RoleName", arn: "iam:role/%s", global: true},
	"AWS::IAM::InstanceProfile":        {property: "InstanceProfileName", arn: "iam:instance-profile/%s", global: true},
	"AWS::IAM::ManagedPolicy":          {property: "ManagedPolicyName", arn: "iam:policy/%s", global: true, byARN: true},
	"AWS::EKS::AccessEntry":            {arn: "eks:access-entry/%s"},
	"AWS::EKS::PodIdentityAssociation": {arn: "eks:podidentityassociation/%s"},
}

// identity gives the resource of a logical id a name and an ARN.
func (s *scope) identity(id string) (identity, error) {
	r, ok := s.raw.Resources[id]
	if !ok {
		return identity{}, fmt.Errorf("the template has no parameter and no resource %q", id)
	}
	if slices.Contains(s.under, id) {
		return identity{}, fmt.Errorf("%s depends on itself", strings.Join(append(s.under, id), " → "))
	}
	s.under = append(s.under, id)
	defer func() { s.under = s.under[:len(s.under)-1] }()
	n := names[r.Type]
	name := ""
	if chosen, ok := r.Properties[n.property]; ok && n.property != "" {
		v, err := s.value(chosen)
		if err != nil {
			return identity{}, fmt.Errorf("the name of %s: %w", id, err)
		}
		name, _ = v.(string)
	}
	if r.Type == "AWS::S3::Bucket" {
		return s.bucket(id, r)
	}
	name = cmp.Or(name, s.place.Name+"-"+id)
	if r.Type == "AWS::Events::Rule" {
		return s.rule(name, r)
	}
	if n.arn == "" {
		return identity{ref: name}, nil
	}
	service, resource, _ := strings.Cut(n.arn, ":")
	region := s.place.Region
	if n.global {
		region = ""
	}
	arn := fmt.Sprintf("arn:%s:%s:%s:%s:"+resource, s.place.Partition, service, region, s.place.Account, name)
	out := identity{ref: name, attributes: map[string]string{"Arn": arn, "Name": name, n.property: name}}
	switch {
	case n.url:
		out.ref = s.place.QueueURL(name)
		out.attributes["QueueUrl"] = out.ref
	case n.byARN:
		out.ref = arn
	}
	return out, nil
}

// rule: the ARN of one names its bus, unless that is AWS's own.
func (s *scope) rule(name string, r resource) (identity, error) {
	bus, err := s.value(r.Properties["EventBusName"])
	if err != nil {
		return identity{}, err
	}
	path := name
	if on, _ := bus.(string); on != "" && Name(on) != "default" {
		path = Name(on) + "/" + name
	}
	arn := fmt.Sprintf("arn:%s:events:%s:%s:rule/%s", s.place.Partition, s.place.Region, s.place.Account, path)
	return identity{ref: name, attributes: map[string]string{"Arn": arn, "Name": name}}, nil
}

func (s *scope) bucket(id string, r resource) (identity, error) {
	name := strings.ToLower(s.place.Name + "-" + id)
	if chosen, ok := r.Properties["BucketName"]; ok {
		v, err := s.value(chosen)
		if err != nil {
			return identity{}, fmt.Errorf("the name of %s: %w", id, err)
		}
		name = fmt.Sprint(v)
	}
	return identity{ref: name, attributes: map[string]string{
		"Arn": "arn:" + s.place.Partition + ":s3:::" + name, "DomainName": name + ".s3.amazonaws.com",
		"RegionalDomainName": name + ".s3." + s.place.Region + ".amazonaws.com",
	}}, nil
}
