# A cluster of terraform-aws-eks whose submodule karpenter made the nodes' role, the
# interruption queue and its rules. Joist takes them over; stop Karpenter first.
terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.8.0"
    }
  }
}

variable "cluster_name" {
  type = string
}

variable "vpc_id" {
  type = string
}

variable "subnet_ids" {
  type = list(string)
}

module "eks" {
  source  = "terraform-aws-modules/eks/aws"
  version = "~> 21.0"

  name               = var.cluster_name
  kubernetes_version = "1.36"
  vpc_id             = var.vpc_id
  subnet_ids         = var.subnet_ids

  # EC2NodeClasses select security groups by this tag; tag the subnets likewise.
  node_security_group_tags = { "karpenter.sh/discovery" = var.cluster_name }

  # Watcher and lifecycle get their roles from EKS Pod Identity.
  addons = {
    eks-pod-identity-agent = {}
  }
}

module "karpenter" {
  source  = "terraform-aws-modules/eks/aws//modules/karpenter"
  version = "~> 21.0"

  cluster_name = module.eks.cluster_name
}

module "joist" {
  source = "../.."

  cluster_name        = module.eks.cluster_name
  functions_version   = "0.1.0"
  functions_directory = "${path.module}/dist"

  node_role_name = module.karpenter.node_iam_role_name
  node_access    = "existing"

  interruption_queue = {
    name       = module.karpenter.queue_name
    has_policy = true
    # The rules of the submodule; Joist adds CapacityReservationInterruptionRule.
    rules = ["InstanceStateChangeRule", "RebalanceRule", "ScheduledChangeRule", "SpotInterruptionRule"]
  }
}

output "helm_command" {
  value = module.joist.helm_command
}
