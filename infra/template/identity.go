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
	// Name is what it is called, and ARN empty of a type whose ARNs are not known here.
	Name, ARN string
	// Attributes are what Fn::GetAtt gives of the type, as far as it is known here, and
	// nothing that CloudFormation refuses.
	Attributes map[string]string
}

// namingRule is how resources of a type are called.
type namingRule struct {
	// property has the name that the template may choose.
	property string
	// arn is the ARN's service and resource, with %s for the name.
	arn string
	// of is the property with what the ARN names before the name, and otherwise what that
	// is where it says nothing.
	of, otherwise string
	// attributes are those of Fn::GetAtt that give the ARN, the name and the queue's URL, as
	// the type's page has them
	// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-template-resource-type-ref.html).
	attributes attributes
	// url says that Ref is the queue's URL, byARN that it is the ARN.
	url, byARN bool
}

type attributes struct{ arn, name, url string }

var arnAlone = attributes{arn: "Arn"}

// namingRules are the types whose names matter.
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

// Identity gives the resource of a logical id a name and an ARN. One without a chosen
// name has the stack's and its logical id, where CloudFormation adds something random.
func (s *Stack) Identity(id string) (Identity, error) {
	made, err := s.IsCreated(id)
	if err != nil {
		return Identity{}, err
	}
	if !made {
		return Identity{}, fmt.Errorf("%s is not made, since %s does not hold", id, s.Resources[id].Condition)
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

// arnPrefix is what the ARN of a resource names before it: a rule's its bus, unless that is
// AWS's own, and a schedule's its group.
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

// nameOf is the name that a resource's property chooses, or the other one.
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
		return "", fmt.Errorf("%s is %v, which is no text", property, v)
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

// resourceARN is that of a resource of this account; IAM's are of no region.
func (p Place) resourceARN(service, resource string) string {
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
