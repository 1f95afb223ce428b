package template

import (
	"cmp"
	"fmt"
	"strings"
)

// Identity is what the rest of a template can say of a resource.
type Identity struct {
	// Ref is what Ref gives: mostly the name, of some types an ARN or a URL.
	Ref string
	// Attributes are what Fn::GetAtt gives; Name and Arn are always among them where
	// the type has an ARN.
	Attributes map[string]string
}

// naming is how resources of a type are called.
type naming struct {
	// property has the name that the template may choose.
	property string
	// arn is the ARN's service and resource, with %s for the name.
	arn string
	// url says that Ref is the queue's URL, byARN that it is the ARN.
	url, byARN bool
}

// names are the types whose names matter.
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
	"AWS::IAM::Role":                   {property: "RoleName", arn: "iam:role/%s"},
	"AWS::IAM::InstanceProfile":        {property: "InstanceProfileName", arn: "iam:instance-profile/%s"},
	"AWS::IAM::ManagedPolicy":          {property: "ManagedPolicyName", arn: "iam:policy/%s", byARN: true},
	"AWS::EKS::AccessEntry":            {arn: "eks:access-entry/%s"},
	"AWS::EKS::PodIdentityAssociation": {arn: "eks:podidentityassociation/%s"},
}

// Identity gives the resource of a logical id a name and an ARN. One without a chosen
// name has the stack's and its logical id, where CloudFormation adds something random.
func (s *Stack) Identity(id string) (Identity, error) {
	made, err := s.Made(id)
	if err != nil {
		return Identity{}, err
	}
	if !made {
		return Identity{}, fmt.Errorf("%s is not made, since %s does not hold", id, s.Resources[id].Condition)
	}
	leave, err := s.enter(id)
	if err != nil {
		return Identity{}, err
	}
	defer leave()
	r := s.Resources[id]
	switch r.Type {
	case "AWS::S3::Bucket":
		return s.bucket(id, r)
	case "AWS::Events::Rule":
		return s.rule(id, r)
	}
	n := names[r.Type]
	name, err := s.named(r, n.property, s.place.Name+"-"+id)
	if err != nil || n.arn == "" {
		return Identity{Ref: name}, err
	}
	service, resource, _ := strings.Cut(n.arn, ":")
	arn := s.place.arn(service, fmt.Sprintf(resource, name))
	out := Identity{Ref: name, Attributes: map[string]string{"Arn": arn, "Name": name}}
	if n.property != "" {
		out.Attributes[n.property] = name
	}
	switch {
	case n.url:
		out.Ref = s.place.queueURL(name)
		out.Attributes["QueueUrl"] = out.Ref
	case n.byARN:
		out.Ref = arn
	}
	return out, nil
}

// named is the name that a resource's property chooses, or the other one.
func (s *Stack) named(r Resource, property, otherwise string) (string, error) {
	chosen, ok := r.Properties[property]
	if !ok {
		return otherwise, nil
	}
	v, err := s.Value(chosen)
	if err != nil {
		return "", fmt.Errorf("%s: %w", property, err)
	}
	name, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%s is %v, which is no text", property, v)
	}
	return cmp.Or(name, otherwise), nil
}

// rule: the ARN of one names its bus, unless that is AWS's own.
func (s *Stack) rule(id string, r Resource) (Identity, error) {
	name, err := s.named(r, "Name", s.place.Name+"-"+id)
	if err != nil {
		return Identity{}, err
	}
	bus, err := s.named(r, "EventBusName", "default")
	if err != nil {
		return Identity{}, err
	}
	path := name
	if bus = Name(bus); bus != "default" {
		path = bus + "/" + name
	}
	return Identity{Ref: name, Attributes: map[string]string{"Arn": s.place.arn("events", "rule/"+path), "Name": name}}, nil
}

func (s *Stack) bucket(id string, r Resource) (Identity, error) {
	name, err := s.named(r, "BucketName", strings.ToLower(s.place.Name+"-"+id))
	if err != nil {
		return Identity{}, err
	}
	return Identity{Ref: name, Attributes: map[string]string{
		"Arn": "arn:" + s.place.Partition + ":s3:::" + name, "Name": name,
		"DomainName":         name + ".s3." + s.place.suffix(),
		"RegionalDomainName": name + ".s3." + s.place.Region + "." + s.place.suffix(),
	}}, nil
}

// arn is that of a resource of this account; IAM's are of no region.
func (p Place) arn(service, resource string) string {
	region := p.Region
	if service == "iam" {
		region = ""
	}
	return strings.Join([]string{"arn", p.Partition, service, region, p.Account, resource}, ":")
}

// Name reads the last part of an ARN or URL: a queue's, a function's or a bus's name.
func Name(arn string) string { return arn[strings.LastIndexAny(arn, ":/")+1:] }

// Service reads the service out of an ARN; what is no ARN has none.
func Service(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return ""
	}
	return parts[2]
}
