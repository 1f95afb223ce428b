package terraform

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

func mapQueue(f fields, r resource) ([]resource, error) {
	maps.Copy(r.body, f.move("QueueName", "name", "MaximumMessageSize", "max_message_size", "MessageRetentionPeriod", "message_retention_seconds",
		"ReceiveMessageWaitTimeSeconds", "receive_wait_time_seconds", "SqsManagedSseEnabled", "sqs_managed_sse_enabled", "VisibilityTimeout", "visibility_timeout_seconds"))
	for from, to := range map[string]string{"RedrivePolicy": "redrive_policy", "RedriveAllowPolicy": "redrive_allow_policy"} {
		if value := f.take(from); value != nil {
			r.body[to] = document{value}
		}
	}
	return []resource{r}, nil
}

func mapQueuePolicy(f fields, r resource) ([]resource, error) {
	queues, _ := f.take("Queues").([]any)
	if len(queues) != 1 {
		return nil, fmt.Errorf("%s has %d queues", f.of, len(queues))
	}
	r.body["queue_url"], r.body["policy"] = queues[0], policyDocument(f.take("PolicyDocument"))
	return []resource{r}, nil
}

func mapRule(f fields, r resource) ([]resource, error) {
	maps.Copy(r.body, f.move("Name", "name", "EventBusName", "event_bus_name", "State", "state"))
	r.body["event_pattern"] = document{f.take("EventPattern")}
	targets := f.items("Targets")
	if len(targets) != 1 {
		return nil, fmt.Errorf("%s has %d targets", f.of, len(targets))
	}
	t := targets[0]
	target := resource{kind: "aws_cloudwatch_event_target", name: r.name, body: t.move("Arn", "arn", "Id", "target_id", "InputPath", "input_path")}
	target.body["rule"] = interpolate(r.address() + ".name")
	target.body["event_bus_name"] = interpolate(r.address() + ".event_bus_name")
	dead, retry := t.inside("DeadLetterConfig"), t.inside("RetryPolicy")
	target.body["dead_letter_config"] = blocks{dead.move("Arn", "arn")}
	target.body["retry_policy"] = blocks{retry.move("MaximumEventAgeInSeconds", "maximum_event_age_in_seconds", "MaximumRetryAttempts", "maximum_retry_attempts")}
	return []resource{r, target}, errors.Join(dead.requireEmpty(), retry.requireEmpty(), t.requireEmpty())
}

func mapArchive(f fields, r resource) ([]resource, error) {
	maps.Copy(r.body, f.move("ArchiveName", "name", "Description", "description", "RetentionDays", "retention_days", "SourceArn", "event_source_arn"))
	r.body["event_pattern"] = document{f.take("EventPattern")}
	return []resource{r}, nil
}

func mapBusPolicy(f fields, r resource) ([]resource, error) {
	r.body["event_bus_name"] = f.take("EventBusName")
	statement, _ := f.take("Statement").(map[string]any)
	statement["Sid"] = f.take("StatementId")
	r.body["policy"] = policyDocument(map[string]any{"Version": "2012-10-17", "Statement": []any{statement}})
	return []resource{r}, nil
}

func mapLogPolicy(f fields, r resource) ([]resource, error) {
	policy, err := parseDocument(f.take("PolicyDocument"))
	r.body["policy_name"], r.body["policy_document"] = f.take("PolicyName"), policyDocument(policy.value)
	return []resource{r}, err
}

func mapRole(f fields, r resource) ([]resource, error) {
	maps.Copy(r.body, f.move("RoleName", "name", "Description", "description"))
	r.body["assume_role_policy"] = policyDocument(f.take("AssumeRolePolicyDocument"))
	r.body["permissions_boundary"] = interpolate("var.permissions_boundary")
	all := []resource{r}
	for _, p := range f.items("Policies") {
		name, _ := p.take("PolicyName").(string)
		policy := resource{kind: "aws_iam_role_policy", name: r.name, body: map[string]any{
			"name": name, "role": interpolate(r.address() + ".id"), "policy": policyDocument(p.take("PolicyDocument")),
		}}
		if name != "joist-"+r.name {
			policy.name += "_" + name
		}
		if err := p.requireEmpty(); err != nil {
			return nil, err
		}
		all = append(all, policy)
	}
	managed, _ := f.take("ManagedPolicyArns").([]any)
	for _, arn := range managed {
		text, _ := arn.(string)
		name := strings.ToLower(upperCase.ReplaceAllString(text[strings.LastIndex(text, "/")+1:], "${1}_$2"))
		all = append(all, resource{kind: "aws_iam_role_policy_attachment", name: r.name + "_" + name, body: map[string]any{
			"role": interpolate(r.address() + ".name"), "policy_arn": arn,
		}})
	}
	return all, nil
}

func mapManagedPolicy(f fields, r resource) ([]resource, error) {
	maps.Copy(r.body, f.move("ManagedPolicyName", "name", "Description", "description"))
	r.body["policy"] = policyDocument(f.take("PolicyDocument"))
	r.body["tags"] = interpolate("local.tags")
	return []resource{r}, nil
}

func mapProfile(f fields, r resource) ([]resource, error) {
	roles, _ := f.take("Roles").([]any)
	if len(roles) != 1 {
		return nil, fmt.Errorf("%s has %d roles", f.of, len(roles))
	}
	maps.Copy(r.body, f.move("InstanceProfileName", "name", "Path", "path"))
	r.body["role"], r.body["tags"] = roles[0], interpolate("local.tags")
	return []resource{r}, nil
}

func mapFunction(f fields, r resource) ([]resource, error) {
	service := r.name
	maps.Copy(r.body, f.move("Architectures", "architectures", "Description", "description", "FunctionName", "function_name", "Handler", "handler",
		"Role", "role", "Runtime", "runtime", "Timeout", "timeout"))
	f.take("Code") // The CDK's assets. The module has its own variables.
	r.body["s3_bucket"] = interpolate("var.functions_bucket")
	r.body["s3_key"] = interpolate(fmt.Sprintf("local.function_keys[%q]", service))
	r.body["filename"] = interpolate(fmt.Sprintf("local.function_files[%q]", service))
	r.body["source_code_hash"] = interpolate(fmt.Sprintf("local.function_hashes[%q]", service))
	r.body["memory_size"] = interpolate(fmt.Sprintf("lookup(var.function_memory, %q, %v)", service, f.take("MemorySize")))
	reserved := f.take("ReservedConcurrentExecutions")
	if reserved == nil {
		reserved = -1
	}
	r.body["reserved_concurrent_executions"] = interpolate(fmt.Sprintf("lookup(var.reserved_concurrency, %q, %v)", service, reserved))
	environment := f.inside("Environment")
	r.body["environment"] = blocks{{"variables": extended{environment.take("Variables"), "var.environment"}}}
	logs := f.inside("LoggingConfig")
	r.body["logging_config"] = blocks{logs.move("LogFormat", "log_format", "LogGroup", "log_group")}
	if vpc := f.inside("VpcConfig"); len(vpc.all) > 0 {
		r.body["vpc_config"] = blocks{vpc.move("SubnetIds", "subnet_ids", "SecurityGroupIds", "security_group_ids")}
	}
	return []resource{r}, errors.Join(environment.requireEmpty(), logs.requireEmpty())
}

// extended is an object to which a variable adds members.
type extended struct {
	value    any
	variable string
}

func mapSource(f fields, r resource) ([]resource, error) {
	maps.Copy(r.body, f.move("BatchSize", "batch_size", "EventSourceArn", "event_source_arn", "FunctionName", "function_name", "FunctionResponseTypes", "function_response_types"))
	scaling := f.inside("ScalingConfig")
	r.body["scaling_config"] = blocks{scaling.move("MaximumConcurrency", "maximum_concurrency")}
	return []resource{r}, scaling.requireEmpty()
}

func mapSchedule(f fields, r resource) ([]resource, error) {
	maps.Copy(r.body, f.move("GroupName", "group_name", "Name", "name", "ScheduleExpression", "schedule_expression", "State", "state"))
	window, target := f.inside("FlexibleTimeWindow"), f.inside("Target")
	dead, retry := target.inside("DeadLetterConfig"), target.inside("RetryPolicy")
	r.body["flexible_time_window"] = blocks{window.move("Mode", "mode")}
	// The input stays a text: jsonencode would escape the < and > of the scheduler's keywords.
	to := target.move("Arn", "arn", "Input", "input", "RoleArn", "role_arn")
	to["dead_letter_config"] = blocks{dead.move("Arn", "arn")}
	to["retry_policy"] = blocks{retry.move("MaximumEventAgeInSeconds", "maximum_event_age_in_seconds", "MaximumRetryAttempts", "maximum_retry_attempts")}
	r.body["target"] = blocks{to}
	return []resource{r}, errors.Join(window.requireEmpty(), dead.requireEmpty(), retry.requireEmpty(), target.requireEmpty())
}

func mapDashboard(f fields, r resource) ([]resource, error) {
	r.body["dashboard_name"] = f.take("DashboardName")
	body, err := parseDocument(f.take("DashboardBody"))
	r.body["dashboard_body"] = body
	return []resource{r}, err
}

func mapAlarm(f fields, r resource) ([]resource, error) {
	maps.Copy(r.body, f.move("AlarmActions", "alarm_actions", "AlarmDescription", "alarm_description", "AlarmName", "alarm_name", "ComparisonOperator", "comparison_operator",
		"DatapointsToAlarm", "datapoints_to_alarm", "EvaluationPeriods", "evaluation_periods", "MetricName", "metric_name", "Namespace", "namespace", "OKActions", "ok_actions",
		"Period", "period", "Statistic", "statistic", "Threshold", "threshold", "TreatMissingData", "treat_missing_data"))
	if list := f.items("Dimensions"); len(list) > 0 {
		dimensions, err := mapDimensions(list)
		if err != nil {
			return nil, err
		}
		r.body["dimensions"] = dimensions
	}
	var queries blocks
	for _, query := range f.items("Metrics") {
		block := query.move("Id", "id", "Expression", "expression", "ReturnData", "return_data")
		if stat := query.inside("MetricStat"); len(stat.all) > 0 {
			metric := stat.inside("Metric")
			inner := stat.move("Period", "period", "Stat", "stat")
			maps.Copy(inner, metric.move("MetricName", "metric_name", "Namespace", "namespace"))
			dimensions, err := mapDimensions(metric.items("Dimensions"))
			if err := errors.Join(err, stat.requireEmpty(), metric.requireEmpty()); err != nil {
				return nil, err
			}
			inner["dimensions"] = dimensions
			block["metric"] = blocks{inner}
		}
		if err := query.requireEmpty(); err != nil {
			return nil, err
		}
		queries = append(queries, block)
	}
	if queries != nil {
		r.body["metric_query"] = queries
	}
	return []resource{r}, nil
}

func mapDimensions(list []fields) (map[string]any, error) {
	dimensions := map[string]any{}
	for _, d := range list {
		name, _ := d.take("Name").(string)
		dimensions[name] = d.take("Value")
		if err := d.requireEmpty(); err != nil {
			return nil, err
		}
	}
	return dimensions, nil
}

// mapBucket splits the bucket: its settings are resources of their own in Terraform.
func mapBucket(f fields, r resource) ([]resource, error) {
	r.body["bucket"] = f.take("BucketName")
	part := func(kind string, body map[string]any) resource {
		body["bucket"] = interpolate(r.address() + ".id")
		return resource{kind: kind, name: r.name, body: body}
	}
	access, encryption, ownership := f.inside("PublicAccessBlockConfiguration"), f.inside("BucketEncryption"), f.inside("OwnershipControls")
	all := []resource{r, part("aws_s3_bucket_public_access_block", access.move("BlockPublicAcls", "block_public_acls", "BlockPublicPolicy", "block_public_policy",
		"IgnorePublicAcls", "ignore_public_acls", "RestrictPublicBuckets", "restrict_public_buckets"))}
	left := []error{access.requireEmpty()}
	for _, rule := range encryption.items("ServerSideEncryptionConfiguration") {
		by := rule.inside("ServerSideEncryptionByDefault")
		all = append(all, part("aws_s3_bucket_server_side_encryption_configuration", map[string]any{
			"rule": blocks{{"apply_server_side_encryption_by_default": blocks{by.move("SSEAlgorithm", "sse_algorithm")}}},
		}))
		left = append(left, by.requireEmpty(), rule.requireEmpty())
	}
	for _, rule := range ownership.items("Rules") {
		all = append(all, part("aws_s3_bucket_ownership_controls", map[string]any{"rule": blocks{rule.move("ObjectOwnership", "object_ownership")}}))
		left = append(left, rule.requireEmpty())
	}
	lifecycle := f.inside("LifecycleConfiguration")
	var rules blocks
	for _, rule := range lifecycle.items("Rules") {
		abort := rule.inside("AbortIncompleteMultipartUpload")
		block := rule.move("Id", "id", "Status", "status")
		block["filter"] = blocks{{}}
		block["expiration"] = blocks{rule.move("ExpirationInDays", "days")}
		block["abort_incomplete_multipart_upload"] = blocks{abort.move("DaysAfterInitiation", "days_after_initiation")}
		rules = append(rules, block)
		left = append(left, abort.requireEmpty(), rule.requireEmpty())
	}
	all = append(all, part("aws_s3_bucket_lifecycle_configuration", map[string]any{"rule": rules}))
	left = append(left, encryption.requireEmpty(), ownership.requireEmpty(), lifecycle.requireEmpty())
	return all, errors.Join(left...)
}

func mapBucketPolicy(f fields, r resource) ([]resource, error) {
	r.body["bucket"], r.body["policy"] = f.take("Bucket"), policyDocument(f.take("PolicyDocument"))
	// S3 rejects a concurrent change of the block of public access.
	r.dependsOn = append(r.dependsOn, "aws_s3_bucket_public_access_block."+r.name)
	slices.Sort(r.dependsOn)
	return []resource{r}, nil
}
