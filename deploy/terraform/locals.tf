data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_region" "current" {}

locals {
  account_id = data.aws_caller_identity.current.account_id
  partition  = data.aws_partition.current.partition
  dns_suffix = data.aws_partition.current.dns_suffix
  region     = data.aws_region.current.id

  name_prefix = coalesce(var.name_prefix, var.cluster_name)
  stack_name  = "Joist-${replace(local.name_prefix, "_", "-")}"
  bucket_name = coalesce(var.bucket_name, "joist-${local.name_prefix}-${local.account_id}-${local.region}")
  tags        = merge(var.tags, { "joist:stack" = local.stack_name })

  # A role's name has at most 64 characters, a profile's 128. A longer one has the prefix instead of the cluster's name.
  node_role_name        = coalesce(var.node_role_name, "KarpenterNodeRole-${length(var.cluster_name) > 46 ? local.name_prefix : var.cluster_name}")
  node_role_path        = trimprefix(var.node_role_path, "/")
  instance_profile_name = "KarpenterNodeInstanceProfile-${length(var.cluster_name) > 99 ? local.name_prefix : var.cluster_name}"

  oidc_issuer = try(split(":oidc-provider/", var.oidc_provider_arn)[1], "")

  interruption_queue_name = try(coalesce(var.interruption_queue.name), var.cluster_name)
  adopt_with_policy       = var.interruption_queue != null && try(var.interruption_queue.has_policy, false)
  adopt_without_policy    = var.interruption_queue != null && !local.adopt_with_policy
  adopted_rules           = try(var.interruption_queue.rules, [])

  # SSM's ARNs have the slash.
  parameters   = [for name in var.parameters : trimprefix(name, "/")]
  alarm_topics = var.alarm_topic_arn == null ? null : [var.alarm_topic_arn]

  # The zip files of a release, in the bucket or in the directory.
  functions      = ["catalog", "disruption", "interruption", "launcher", "planner"]
  function_zips  = { for name in local.functions : name => "joist-${name}_${var.functions_version}_lambda_arm64.zip" }
  function_keys  = { for name, zip in local.function_zips : name => var.functions_bucket == null ? null : "${var.functions_prefix}${zip}" }
  function_files = { for name, zip in local.function_zips : name => var.functions_bucket == null ? "${var.functions_directory}/${zip}" : null }
  function_hashes = {
    for name, file in local.function_files : name => var.functions_bucket == null ? filebase64sha256(file) : null
  }
}
