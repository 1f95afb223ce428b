package peers

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/joist-autoscaler/joist/infra/template"
)

// reader reads one resource from a peer, as properties with CloudFormation's names. It
// finds the resource by the properties in want.
type reader func(ctx context.Context, server aws.Config, want object) (object, error)

// readers are the readers by CloudFormation type. A type of the template without a reader
// fails the test.
var readers = map[string]reader{
	"AWS::CloudWatch::Alarm":           readAlarm,
	"AWS::CloudWatch::Dashboard":       readDashboard,
	"AWS::EKS::AccessEntry":            readAccessEntry,
	"AWS::EKS::PodIdentityAssociation": readPodIdentity,
	"AWS::Events::Archive":             readArchive,
	"AWS::Events::EventBus":            readBus,
	"AWS::Events::EventBusPolicy":      readBusPolicy,
	"AWS::Events::Rule":                readRule,
	"AWS::IAM::ManagedPolicy":          readManagedPolicy,
	"AWS::IAM::Role":                   readRole,
	"AWS::Lambda::EventSourceMapping":  readMapping,
	"AWS::Lambda::Function":            readFunction,
	"AWS::Logs::LogGroup":              readLogGroup,
	"AWS::Logs::ResourcePolicy":        readLogPolicy,
	"AWS::S3::Bucket":                  readBucket,
	"AWS::S3::BucketPolicy":            readBucketPolicy,
	"AWS::SQS::Queue":                  readQueue,
	"AWS::SQS::QueuePolicy":            readQueuePolicy,
	"AWS::Scheduler::Schedule":         readSchedule,
	"AWS::Scheduler::ScheduleGroup":    readScheduleGroup,
}

// unread are properties that no API returns.
var unread = map[string]string{
	"AWS::Lambda::Function Code": "Lambda returns a link to the code, not its place in S3",
}

var errAbsent = errors.New("the peer does not have it")

// nameOf returns a string property.
func nameOf(o object, name string) *string {
	s, _ := o[name].(string)
	return &s
}

// shape returns an SDK response as JSON without unset fields. The SDK's names are
// CloudFormation's, with a few exceptions that the readers rename.
func shape(answer any) object {
	out, _ := prune(reparse(answer)).(object)
	delete(out, "ResultMetadata")
	return out
}

// reparse converts any value to encoding/json's types.
func reparse(value any) any {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	var out any
	_ = json.Unmarshal(encoded, &out)
	return out
}

func prune(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
	case object:
		for name := range v {
			v[name] = prune(v[name])
		}
		maps.DeleteFunc(v, func(_ string, each any) bool { return each == nil || each == "" })
	}
	return value
}

// tagged adds tags to the objects that were read.
func tagged[K ~string](o object, tags map[K]string, err error) (object, error) {
	var list []any
	for key, value := range tags {
		list = append(list, object{"Key": string(key), "Value": value})
	}
	if o["Tags"] = list; len(list) == 0 {
		delete(o, "Tags")
	}
	return o, err
}

func readQueue(ctx context.Context, server aws.Config, want object) (object, error) {
	client := sqs.NewFromConfig(server)
	found, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: nameOf(want, "QueueName")})
	if err != nil {
		return nil, err
	}
	out, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: found.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return nil, err
	}
	read := object{"QueueName": path.Base(*found.QueueUrl)}
	for name, value := range out.Attributes {
		read[name] = parseAttribute(value)
	}
	tags, err := client.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: found.QueueUrl})
	if err != nil {
		return nil, err
	}
	return tagged(read, tags.Tags, nil)
}

// parseAttribute parses an SQS attribute or an XML element, which are strings.
func parseAttribute(value string) any {
	if n, err := strconv.ParseFloat(value, 64); err == nil {
		return n
	}
	if yes, err := strconv.ParseBool(value); err == nil {
		return yes
	}
	return value
}

func readQueuePolicy(ctx context.Context, server aws.Config, want object) (object, error) {
	client := sqs.NewFromConfig(server)
	read := object{"Queues": want["Queues"]}
	for _, queue := range want["Queues"].([]any) {
		found, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(path.Base(queue.(string)))})
		if err != nil {
			return nil, err
		}
		out, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl: found.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNamePolicy},
		})
		if err != nil {
			return nil, err
		}
		policy, ok := out.Attributes["Policy"]
		if !ok {
			return nil, errAbsent
		}
		read["PolicyDocument"] = policy
	}
	return read, nil
}

// eventTags adds the tags of a bus or a rule.
func eventTags(ctx context.Context, client *eventbridge.Client, read object, arn *string) (object, error) {
	out, err := client.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: arn})
	if err != nil {
		return nil, err
	}
	tags := map[string]string{}
	for _, tag := range out.Tags {
		tags[*tag.Key] = *tag.Value
	}
	return tagged(read, tags, nil)
}

func readBus(ctx context.Context, server aws.Config, want object) (object, error) {
	client := eventbridge.NewFromConfig(server)
	out, err := client.DescribeEventBus(ctx, &eventbridge.DescribeEventBusInput{Name: nameOf(want, "Name")})
	if err != nil {
		return nil, err
	}
	return eventTags(ctx, client, shape(out), out.Arn)
}

func readBusPolicy(ctx context.Context, server aws.Config, want object) (object, error) {
	out, err := eventbridge.NewFromConfig(server).DescribeEventBus(ctx, &eventbridge.DescribeEventBusInput{Name: nameOf(want, "EventBusName")})
	if err != nil {
		return nil, err
	}
	var policy struct{ Statement []object }
	_ = json.Unmarshal([]byte(aws.ToString(out.Policy)), &policy)
	for _, statement := range policy.Statement {
		if statement["Sid"] == want["StatementId"] {
			delete(statement, "Sid")
			return object{"EventBusName": *out.Name, "StatementId": want["StatementId"], "Statement": statement}, nil
		}
	}
	return nil, errAbsent
}

func readRule(ctx context.Context, server aws.Config, want object) (object, error) {
	client := eventbridge.NewFromConfig(server)
	out, err := client.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: nameOf(want, "Name"), EventBusName: nameOf(want, "EventBusName")})
	if err != nil {
		return nil, err
	}
	targets, err := client.ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: out.Name, EventBusName: nameOf(want, "EventBusName")})
	if err != nil {
		return nil, err
	}
	read := shape(out)
	read["Targets"] = shape(targets)["Targets"]
	return eventTags(ctx, client, read, out.Arn)
}

func readArchive(ctx context.Context, server aws.Config, want object) (object, error) {
	out, err := eventbridge.NewFromConfig(server).DescribeArchive(ctx, &eventbridge.DescribeArchiveInput{ArchiveName: nameOf(want, "ArchiveName")})
	if err != nil {
		return nil, err
	}
	read := shape(out)
	read["SourceArn"] = read["EventSourceArn"]
	return read, nil
}

func readBucket(ctx context.Context, server aws.Config, want object) (object, error) {
	client, name := s3Client(server), nameOf(want, "BucketName")
	if _, err := client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: name}); err != nil {
		return nil, err
	}
	read := object{"BucketName": *name}
	if out, err := client.GetBucketEncryption(ctx, &s3.GetBucketEncryptionInput{Bucket: name}); err == nil {
		var rules []any
		for _, rule := range out.ServerSideEncryptionConfiguration.Rules {
			rules = append(rules, object{"ServerSideEncryptionByDefault": shape(rule.ApplyServerSideEncryptionByDefault)})
		}
		read["BucketEncryption"] = object{"ServerSideEncryptionConfiguration": rules}
	}
	if out, err := client.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: name}); err == nil {
		var rules []any
		for _, rule := range out.Rules {
			each := object{"Id": aws.ToString(rule.ID), "Status": rule.Status}
			if rule.Expiration != nil {
				each["ExpirationInDays"] = rule.Expiration.Days
			}
			if rule.AbortIncompleteMultipartUpload != nil {
				each["AbortIncompleteMultipartUpload"] = shape(rule.AbortIncompleteMultipartUpload)
			}
			rules = append(rules, each)
		}
		read["LifecycleConfiguration"] = object{"Rules": rules}
	}
	if out, err := client.GetBucketOwnershipControls(ctx, &s3.GetBucketOwnershipControlsInput{Bucket: name}); err == nil {
		read["OwnershipControls"] = shape(out.OwnershipControls)
	}
	if out, err := client.GetPublicAccessBlock(ctx, &s3.GetPublicAccessBlockInput{Bucket: name}); err == nil {
		read["PublicAccessBlockConfiguration"] = shape(out.PublicAccessBlockConfiguration)
	}
	if out, err := client.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: name}); err == nil {
		read["Tags"] = out.TagSet
	}
	return read, nil
}

func readBucketPolicy(ctx context.Context, server aws.Config, want object) (object, error) {
	out, err := s3Client(server).GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: nameOf(want, "Bucket")})
	if err != nil {
		return nil, err
	}
	return object{"Bucket": want["Bucket"], "PolicyDocument": *out.Policy}, nil
}

func s3Client(server aws.Config) *s3.Client {
	return s3.NewFromConfig(server, func(o *s3.Options) { o.UsePathStyle = true })
}

// unescape decodes a policy document, which IAM returns URL-encoded.
func unescape(document *string) string {
	out, err := url.PathUnescape(aws.ToString(document))
	if err != nil {
		return aws.ToString(document)
	}
	return out
}

func readRole(ctx context.Context, server aws.Config, want object) (object, error) {
	client, name := iam.NewFromConfig(server), nameOf(want, "RoleName")
	out, err := client.GetRole(ctx, &iam.GetRoleInput{RoleName: name})
	if err != nil {
		return nil, err
	}
	read := shape(out.Role)
	read["AssumeRolePolicyDocument"] = unescape(out.Role.AssumeRolePolicyDocument)
	inline, err := client.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: name})
	if err != nil {
		return nil, err
	}
	var policies, attached []any
	for _, each := range inline.PolicyNames {
		policy, err := client.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: name, PolicyName: &each})
		if err != nil {
			return nil, err
		}
		policies = append(policies, object{"PolicyName": each, "PolicyDocument": unescape(policy.PolicyDocument)})
	}
	list, err := client.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: name})
	if err != nil {
		return nil, err
	}
	for _, each := range list.AttachedPolicies {
		attached = append(attached, *each.PolicyArn)
	}
	read["Policies"], read["ManagedPolicyArns"] = policies, attached
	return read, nil
}

func readManagedPolicy(ctx context.Context, server aws.Config, want object) (object, error) {
	client := iam.NewFromConfig(server)
	arn := aws.String("arn:aws:iam::" + deployedAccount + ":policy/" + *nameOf(want, "ManagedPolicyName"))
	out, err := client.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: arn})
	if err != nil {
		return nil, err
	}
	version, err := client.GetPolicyVersion(ctx, &iam.GetPolicyVersionInput{PolicyArn: arn, VersionId: out.Policy.DefaultVersionId})
	if err != nil {
		return nil, err
	}
	read := shape(out.Policy)
	read["ManagedPolicyName"] = read["PolicyName"]
	read["PolicyDocument"] = unescape(version.PolicyVersion.Document)
	return read, nil
}

func readLogGroup(ctx context.Context, server aws.Config, want object) (object, error) {
	client, name := cloudwatchlogs.NewFromConfig(server), nameOf(want, "LogGroupName")
	out, err := client.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: name})
	if err != nil {
		return nil, err
	}
	for _, group := range out.LogGroups {
		if *group.LogGroupName != *name {
			continue
		}
		arn := strings.TrimSuffix(aws.ToString(group.Arn), ":*")
		tags, err := client.ListTagsForResource(ctx, &cloudwatchlogs.ListTagsForResourceInput{ResourceArn: &arn})
		if err != nil {
			return nil, err
		}
		return tagged(shape(group), tags.Tags, nil)
	}
	return nil, errAbsent
}

func readLogPolicy(ctx context.Context, server aws.Config, want object) (object, error) {
	out, err := cloudwatchlogs.NewFromConfig(server).DescribeResourcePolicies(ctx, &cloudwatchlogs.DescribeResourcePoliciesInput{})
	if err != nil {
		return nil, err
	}
	for _, policy := range out.ResourcePolicies {
		if *policy.PolicyName == *nameOf(want, "PolicyName") {
			return shape(policy), nil
		}
	}
	return nil, errAbsent
}

func readSchedule(ctx context.Context, server aws.Config, want object) (object, error) {
	out, err := scheduler.NewFromConfig(server).GetSchedule(ctx, &scheduler.GetScheduleInput{Name: nameOf(want, "Name"), GroupName: nameOf(want, "GroupName")})
	return shape(out), err
}

func readScheduleGroup(ctx context.Context, server aws.Config, want object) (object, error) {
	client := scheduler.NewFromConfig(server)
	out, err := client.GetScheduleGroup(ctx, &scheduler.GetScheduleGroupInput{Name: nameOf(want, "Name")})
	if err != nil {
		return nil, err
	}
	tags, err := client.ListTagsForResource(ctx, &scheduler.ListTagsForResourceInput{ResourceArn: out.Arn})
	if err != nil {
		return nil, err
	}
	read := shape(out)
	read["Tags"] = tags.Tags
	return read, nil
}

func readFunction(ctx context.Context, server aws.Config, want object) (object, error) {
	out, err := lambda.NewFromConfig(server).GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: nameOf(want, "FunctionName")})
	if err != nil {
		return nil, err
	}
	return tagged(shape(out.Configuration), out.Tags, nil)
}

func readMapping(ctx context.Context, server aws.Config, want object) (object, error) {
	client := lambda.NewFromConfig(server)
	out, err := client.ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{FunctionName: nameOf(want, "FunctionName")})
	if err != nil {
		return nil, err
	}
	if len(out.EventSourceMappings) != 1 {
		return nil, errAbsent
	}
	mapping := out.EventSourceMappings[0]
	read := shape(mapping)
	read["FunctionName"] = template.Name(aws.ToString(mapping.FunctionArn))
	if tags, err := client.ListTags(ctx, &lambda.ListTagsInput{Resource: mapping.EventSourceMappingArn}); err == nil {
		return tagged(read, tags.Tags, nil)
	}
	return read, nil
}

func readAccessEntry(ctx context.Context, server aws.Config, want object) (object, error) {
	out, err := eks.NewFromConfig(server).DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{
		ClusterName: nameOf(want, "ClusterName"), PrincipalArn: nameOf(want, "PrincipalArn"),
	})
	if err != nil {
		return nil, err
	}
	return tagged(shape(out.AccessEntry), out.AccessEntry.Tags, nil)
}

func readPodIdentity(ctx context.Context, server aws.Config, want object) (object, error) {
	client := eks.NewFromConfig(server)
	list, err := client.ListPodIdentityAssociations(ctx, &eks.ListPodIdentityAssociationsInput{
		ClusterName: nameOf(want, "ClusterName"), Namespace: nameOf(want, "Namespace"), ServiceAccount: nameOf(want, "ServiceAccount"),
	})
	if err != nil {
		return nil, err
	}
	if len(list.Associations) != 1 {
		return nil, errAbsent
	}
	out, err := client.DescribePodIdentityAssociation(ctx, &eks.DescribePodIdentityAssociationInput{
		ClusterName: nameOf(want, "ClusterName"), AssociationId: list.Associations[0].AssociationId,
	})
	if err != nil {
		return nil, err
	}
	return tagged(shape(out.Association), out.Association.Tags, nil)
}
