package template

import (
	"cmp"
	"fmt"
	"strings"
)

// Identity has the names by which a template refers to a resource.
type Identity struct {
	// Ref is the value of Ref: usually the name, for some types an ARN or a URL.
	Ref string
	// Name is the resource's name. ARN is empty for unsupported types.
	Name, ARN string
	// Attributes are the supported values of Fn::GetAtt.
	Attributes map[string]string
}

// namingRule says how resources of a type are named.
type namingRule struct {
	// property is the property with the name.
	property string
	// arn has the ARN's service and resource, with %s for the name.
	arn string
	// of is the property with the prefix of the name in the ARN, otherwise its default.
	of, otherwise string
	// attributes are the names of Fn::GetAtt for the ARN, the name and the queue's URL
	// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-template-resource-type-ref.html).
	attributes attributes
	// url is set if Ref is the queue's URL, byARN if it is the ARN.
	url, byARN bool
}

type attributes struct{ arn, name, url string }

var arnAlone = attributes{arn: "Arn"}

// namingRules are the supported types.
var namingRules = map[string]namingRule{
	"AWS::SQS::Queue":               {property: "QueueName", arn: "sqs:%s", url: true, attributes: attributes{"Arn", "QueueName", "QueueUrl"}},
	"AWS::Events::EventBus":         {property: "Name", arn: "events:event-bus/%s", attributes: attributes{arn: "Arn", name: "Name"}},
	"AWS::Events::Rule":             {property: "Name", arn: "events:rule/%s", of: "EventBusName", attributes: arnAlone},
	"AWS::Events::Archive":          {property: "ArchiveName", arn: "events:archive/%s", attributes: arnAlone},
	"AWS::Scheduler::ScheduleGroup": {property: "Name", arn: "scheduler:schedule-group/%s", attributes: arnAlone},
	"AWS::Scheduler::Schedule":      {property: "Name", arn: "scheduler:schedule/%s", of: "GroupName", otherwise: "default", attributes: arnAlone},
	"AWS::Lambda::Function":         {property: "FunctionName", arn: "lambda:function:%s", attributes: arnAlone},
	"AWS::Logs::LogGroup":           {property: "LogGroupName", arn: "logs:log-group:%s:*", attributes: arnAlone},
	"AWS::CloudWatch::Alarm":        {property: "AlarmName", arn: "cloudwatch:alarm:%s", attributes: arnAlone},
	"AWS::CloudWatch::Dashboard":    {property: "DashboardName"},
	"AWS::SNS::Topic":               {property: "TopicName", arn: "sns:%s", byARN: true, attributes: attributes{arn: "TopicArn", name: "TopicName"}},
	"AWS::IAM::Role":                {property: "RoleName", arn: "iam:role/%s", attributes: arnAlone},
	"AWS::IAM::InstanceProfile":     {property: "InstanceProfileName", arn: "iam:instance-profile/%s", attributes: arnAlone},
	"AWS::IAM::ManagedPolicy":       {property: "ManagedPolicyName", arn: "iam:policy/%s", byARN: true, attributes: attributes{arn: "PolicyArn"}},
}

// Identity returns the name and the ARN of the resource with the logical id. The default
// name is <stack>-<logical id>, to which CloudFormation adds a random suffix.
func (s *Stack) Identity(id string) (Identity, error) {
	made, err := s.IsCreated(id)
	if err != nil {
		return Identity{}, err
	}
	if !made {
		return Identity{}, fmt.Errorf("%s is not created, because the condition %s is false", id, s.Resources[id].Condition)
	}
	leave, err := s.enterResource(id)
	if err != nil {
		return Identity{}, err
	}
	defer leave()
	r := s.Resources[id]
	if r.Type == "AWS::S3::Bucket" {
		return s.bucketIdentity(id, r)
	}
	n := namingRules[r.Type]
	name, err := s.nameOf(r, n.property, s.place.Name+"-"+id)
	if err != nil || n.arn == "" {
		return Identity{Ref: name, Name: name}, err
	}
	below, err := s.arnPrefix(r, n)
	if err != nil {
		return Identity{}, err
	}
	service, resource, _ := strings.Cut(n.arn, ":")
	out := Identity{Ref: name, Name: name, ARN: s.place.resourceARN(service, fmt.Sprintf(resource, below+name)), Attributes: map[string]string{}}
	if n.url {
		out.Ref = s.place.queueURL(name)
		out.Attributes[n.attributes.url] = out.Ref
	}
	if n.byARN {
		out.Ref = out.ARN
	}
	out.Attributes[n.attributes.arn] = out.ARN
	if n.attributes.name != "" {
		out.Attributes[n.attributes.name] = name
	}
	return out, nil
}

// arnPrefix returns the prefix of the name in the ARN: a rule's bus, unless it is the default
// bus, and a schedule's group.
func (s *Stack) arnPrefix(r Resource, n namingRule) (string, error) {
	if n.of == "" {
		return "", nil
	}
	of, err := s.nameOf(r, n.of, n.otherwise)
	if err != nil {
		return "", err
	}
	if of = Name(of); of == "" || r.Type == "AWS::Events::Rule" && of == "default" {
		return "", nil
	}
	return of + "/", nil
}

// nameOf returns the value of a resource's property, or the default.
func (s *Stack) nameOf(r Resource, property, otherwise string) (string, error) {
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
		return "", fmt.Errorf("%s is %v, not a text", property, v)
	}
	return cmp.Or(name, otherwise), nil
}

func (s *Stack) bucketIdentity(id string, r Resource) (Identity, error) {
	name, err := s.nameOf(r, "BucketName", strings.ToLower(s.place.Name+"-"+id))
	if err != nil {
		return Identity{}, err
	}
	arn := "arn:" + s.place.Partition + ":s3:::" + name
	return Identity{Ref: name, Name: name, ARN: arn, Attributes: map[string]string{
		"Arn":                arn,
		"DomainName":         name + ".s3." + s.place.domainSuffix(),
		"RegionalDomainName": name + ".s3." + s.place.Region + "." + s.place.domainSuffix(),
	}}, nil
}

// resourceARN returns an ARN in this account; those of IAM have no region.
func (p Place) resourceARN(service, resource string) string {
	region := p.Region
	if service == "iam" {
		region = ""
	}
	return strings.Join([]string{"arn", p.Partition, service, region, p.Account, resource}, ":")
}

// Name returns the last part of an ARN or URL: the name of a queue, function or bus.
func Name(arn string) string { return arn[strings.LastIndexAny(arn, ":/")+1:] }

// Service returns the service of an ARN, or "" if it is not an ARN.
func Service(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return ""
	}
	return parts[2]
}
