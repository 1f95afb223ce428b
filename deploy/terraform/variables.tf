variable "cluster_name" {
  description = "The name of the EKS cluster."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$", var.cluster_name))
    error_message = "The name of an EKS cluster has 1 to 100 letters, digits, hyphens and underscores."
  }
}

variable "cluster_uid" {
  description = "The UID of the namespace kube-system, if the account has had two clusters with the same name."
  type        = string
  default     = null
}

variable "name_prefix" {
  description = "The prefix of all names, which has at most 42 characters. The cluster's name by default."
  type        = string
  default     = null

  validation {
    condition     = length(coalesce(var.name_prefix, var.cluster_name)) <= 42
    error_message = "The cluster's name has more than 42 characters: set name_prefix."
  }
}

variable "bucket_name" {
  description = "The name of the bucket of Joist's documents. joist-<prefix>-<account>-<region> by default, for which the prefix must have lower-case letters, digits and hyphens."
  type        = string
  default     = null
}

variable "namespace" {
  description = "The namespace of watcher and lifecycle."
  type        = string
  default     = "joist"
  nullable    = false
}

variable "tags" {
  description = "Tags of all resources."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "permissions_boundary" {
  description = "The ARN of the policy that is the permissions boundary of all roles."
  type        = string
  default     = null
}

variable "retain_data" {
  description = "Keep the bucket's objects and the audit log when the module is destroyed. If true, destroy fails on a bucket with objects, and removes the audit log only from the state."
  type        = bool
  default     = true
  nullable    = false
}

# The functions' code.

variable "functions_version" {
  description = "The version in the names of the functions' zip files, joist-<service>_<version>_lambda_arm64.zip."
  type        = string
  nullable    = false
}

variable "functions_directory" {
  description = "The directory of the functions' zip files. Required without functions_bucket."
  type        = string
  default     = null
}

variable "functions_bucket" {
  description = "The bucket of the functions' zip files, in the region of the cluster, instead of functions_directory."
  type        = string
  default     = null

  validation {
    condition     = (var.functions_bucket == null) != (var.functions_directory == null)
    error_message = "Set either functions_bucket or functions_directory."
  }
}

variable "functions_prefix" {
  description = "The prefix of the keys of the zip files in functions_bucket, such as joist/v0.1.0/."
  type        = string
  default     = ""
  nullable    = false
}

variable "function_memory" {
  description = "The memory of functions in MB, by service, such as { planner = 3538 }."
  type        = map(number)
  default     = {}
  nullable    = false
}

variable "reserved_concurrency" {
  description = "The reserved concurrency of functions, by service, such as { interruption = 10 }. At least the maximum concurrency of the event source: catalog 4, disruption, launcher and planner 2, interruption 10."
  type        = map(number)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name, least in { catalog = 4, disruption = 2, interruption = 10, launcher = 2, planner = 2 } : lookup(var.reserved_concurrency, name, least) >= least])
    error_message = "The reserved concurrency is below the maximum concurrency of the event source, and Lambda would throttle it."
  }
}

variable "environment" {
  description = "Additional environment variables of all functions, such as { LOG_LEVEL = \"debug\" }."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "subnet_ids" {
  description = "The subnets of the functions, which then need a NAT gateway or VPC endpoints. Without subnets, the functions are in no VPC."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "security_group_ids" {
  description = "The security groups of the functions in subnet_ids."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = (length(var.subnet_ids) > 0) == (length(var.security_group_ids) > 0)
    error_message = "Set both subnet_ids and security_group_ids, or neither."
  }
}

# The cluster and its nodes.

variable "node_role_name" {
  description = "The name of the nodes' existing role, such as node_iam_role_name of the submodule karpenter of terraform-aws-eks. Without it, the module creates KarpenterNodeRole-<cluster>, or KarpenterNodeRole-<prefix> if the cluster's name has more than 46 characters."
  type        = string
  default     = null
}

variable "node_role_path" {
  description = "The path of the existing role, such as /eks/."
  type        = string
  default     = "/"
  nullable    = false

  validation {
    condition     = can(regex("^/([0-9A-Za-z_+=,.@-]+/)*$", var.node_role_path))
    error_message = "A role's path begins and ends with a slash, such as /eks/."
  }

  validation {
    condition     = var.node_role_path == "/" || var.node_role_name != null
    error_message = "Set node_role_name as well: the role that the module creates has no path."
  }
}

variable "windows_node_role_name" {
  description = "The name of the existing role of Windows nodes, after its path if it has one, such as eks/windows. The module creates its access entry."
  type        = string
  default     = null

  validation {
    condition     = var.windows_node_role_name == null || can(regex("^([0-9A-Za-z_+=,.@-]+/)*[0-9A-Za-z_+=,.@-]{1,64}$", var.windows_node_role_name))
    error_message = "Give the name of a role, after its path without the first slash."
  }
}

variable "node_access" {
  description = "accessEntry creates the access entry of the nodes' role; existing means that the cluster already admits the nodes."
  type        = string
  default     = "accessEntry"
  nullable    = false

  validation {
    condition     = contains(["accessEntry", "existing"], var.node_access)
    error_message = "Use accessEntry or existing."
  }
}

variable "node_profiles" {
  description = "role: EC2NodeClasses have spec.role, and the launcher creates instance profiles. instanceProfile: they have spec.instanceProfile, and no role of Joist may write IAM."
  type        = string
  default     = "role"
  nullable    = false

  validation {
    condition     = contains(["role", "instanceProfile"], var.node_profiles)
    error_message = "Use role or instanceProfile."
  }
}

variable "node_tags" {
  description = "The tag keys that spec.tags of EC2NodeClasses may have in addition to Joist's own; * allows any."
  type        = list(string)
  default     = ["*"]
  nullable    = false
}

variable "snapshots" {
  description = "The ids of snapshots in block devices of EC2NodeClasses that lack the cluster's tag, with wildcards."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "parameters" {
  description = "The names of SSM parameters in ssmParameter terms of EC2NodeClasses."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "replayers" {
  description = "The ARNs of roles that may send dead-letter messages back to the queues."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "oidc_provider_arn" {
  description = "The ARN of the cluster's OIDC provider, for the roles of watcher and lifecycle. Without it, they use EKS Pod Identity."
  type        = string
  default     = null
}

variable "interruption_queue" {
  description = "The existing queue of interruption events: its name, whether its policy allows EventBridge to send, and the ids of its existing rules (CapacityReservationInterruptionRule, InstanceStateChangeRule, RebalanceRule, ScheduledChangeRule, SpotInterruptionRule). Its visibility timeout must be at least 30 s. Without it, the module creates a queue with the cluster's name."
  type = object({
    name       = string
    has_policy = optional(bool, false)
    rules      = optional(list(string), [])
  })
  default = null

  validation {
    condition = alltrue([for rule in try(var.interruption_queue.rules, []) : contains(
      ["CapacityReservationInterruptionRule", "InstanceStateChangeRule", "RebalanceRule", "ScheduledChangeRule", "SpotInterruptionRule"], rule
    )])
    error_message = "The rules are CapacityReservationInterruptionRule, InstanceStateChangeRule, RebalanceRule, ScheduledChangeRule and SpotInterruptionRule."
  }

  validation {
    condition     = try(length(var.interruption_queue.rules) == 0 || var.interruption_queue.has_policy, true)
    error_message = "Rules send to the queue, but no policy allows them to: set has_policy, or leave out rules, and the module creates both."
  }

  validation {
    condition     = length(try(coalesce(var.interruption_queue.name), var.cluster_name)) <= 80
    error_message = "A queue's name has at most 80 characters, so it cannot be the cluster's: create a queue with a shorter name, and set interruption_queue."
  }
}

variable "zonal_shift" {
  description = "Avoid zones with an active zonal shift."
  type        = bool
  default     = false
  nullable    = false
}

variable "reboot_for_repair" {
  description = "Allow the launcher to reboot the cluster's instances (ec2:RebootInstances), for the feature gate RebootForRepair."
  type        = bool
  default     = false
  nullable    = false
}

variable "isolated_vpc" {
  description = "Call only services that have a VPC endpoint."
  type        = bool
  default     = false
  nullable    = false
}

# Alarms and metrics.

variable "alarm_topic_arn" {
  description = "The ARN of the SNS topic of alarms that page."
  type        = string
  default     = null
}

variable "cloudwatch_metrics" {
  description = "The address of the CloudWatch agent to which watcher and lifecycle send metrics, such as tcp://cloudwatch-agent.amazon-cloudwatch:25888."
  type        = string
  default     = null

  validation {
    condition     = can(regex("^(tcp://|$)", coalesce(var.cloudwatch_metrics, "tcp://")))
    error_message = "Use an address such as tcp://cloudwatch-agent.amazon-cloudwatch:25888."
  }
}

# The charts, for the output helm_command.

variable "images" {
  description = "The registry and folder of the images of watcher and lifecycle."
  type        = string
  default     = "ghcr.io/joist-autoscaler"
  nullable    = false
}

variable "chart_repository" {
  description = "Where helm finds the charts joist and joist-crd."
  type        = string
  default     = "oci://ghcr.io/joist-autoscaler/charts"
  nullable    = false
}
