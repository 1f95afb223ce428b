terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source = "hashicorp/aws"
      # The first version that accepts SQS messages of 1 MiB.
      version = ">= 6.8.0"
    }
  }
}
