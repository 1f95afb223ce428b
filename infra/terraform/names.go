package terraform

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// terraformTypes are the Terraform types of the resources of a template.
var terraformTypes = map[string]string{
	"AWS::CloudWatch::Alarm": "aws_cloudwatch_metric_alarm", "AWS::CloudWatch::Dashboard": "aws_cloudwatch_dashboard",
	"AWS::EKS::AccessEntry": "aws_eks_access_entry", "AWS::EKS::PodIdentityAssociation": "aws_eks_pod_identity_association",
	"AWS::Events::Archive": "aws_cloudwatch_event_archive", "AWS::Events::EventBus": "aws_cloudwatch_event_bus",
	"AWS::Events::EventBusPolicy": "aws_cloudwatch_event_bus_policy", "AWS::Events::Rule": "aws_cloudwatch_event_rule",
	"AWS::IAM::InstanceProfile": "aws_iam_instance_profile", "AWS::IAM::ManagedPolicy": "aws_iam_policy", "AWS::IAM::Role": "aws_iam_role",
	"AWS::Lambda::EventSourceMapping": "aws_lambda_event_source_mapping", "AWS::Lambda::Function": "aws_lambda_function",
	"AWS::Logs::LogGroup": "aws_cloudwatch_log_group", "AWS::Logs::ResourcePolicy": "aws_cloudwatch_log_resource_policy",
	"AWS::S3::Bucket": "aws_s3_bucket", "AWS::S3::BucketPolicy": "aws_s3_bucket_policy", "AWS::SQS::Queue": "aws_sqs_queue",
	"AWS::SQS::QueuePolicy": "aws_sqs_queue_policy", "AWS::Scheduler::Schedule": "aws_scheduler_schedule",
	"AWS::Scheduler::ScheduleGroup": "aws_scheduler_schedule_group",
}

// redundantWords are the words of a construct's path that its Terraform type repeats.
var redundantWords = []string{"queue", "main", "policy", "role", "function", "logs", "source", "identity", "rule", "ticker", "nodes", "store", "bucket", "board", "bus", "events"}

var upperCase = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// nameResources returns the Terraform addresses of a template's resources by logical id.
func nameResources(template synthesized, prefix string) (map[string]string, error) {
	names, used := map[string]string{}, map[string]string{}
	for _, id := range sortedKeys(template.Resources) {
		r := template.Resources[id]
		kind, ok := terraformTypes[r.Type]
		if !ok {
			return nil, fmt.Errorf("the resource %s has the type %s, which has no translation", id, r.Type)
		}
		address := kind + "." + shortName(r.Metadata.Path, prefix)
		if other := used[address]; other != "" {
			return nil, fmt.Errorf("the resources %s and %s are both %s", other, id, address)
		}
		used[address], names[id] = id, address
	}
	return names, nil
}

// shortName returns the name of a resource from its construct's path, such as catalog_dead for
// Joist-prod/Cluster-prod/CatalogQueue/Dead.
func shortName(path, prefix string) string {
	parts := strings.Split(path, "/")[1:]
	if strings.HasPrefix(parts[0], "Cluster-") {
		parts = parts[1:]
	}
	var words []string
	for _, part := range parts {
		part = strings.TrimPrefix(part, prefix+"-joist-")
		part = upperCase.ReplaceAllString(part, "${1}_$2")
		for word := range strings.FieldsFuncSeq(strings.ToLower(part), func(r rune) bool { return r == '-' || r == '_' }) {
			words = append(words, word)
		}
	}
	short := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(redundantWords, w) })
	if len(short) == 0 {
		short = words[:1]
	}
	return strings.Join(short, "_")
}
