package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/joist-autoscaler/joist/infra/config"
)

// place is the deployment's partition, account and region. Account and region are pseudo
// parameters if the config has none.
type place struct{ partition, account, region string }

func placeOf(c config.Config) place {
	p := place{c.Partition, c.Account, c.Region}
	if p.account == "" {
		p.account = *awscdk.Aws_ACCOUNT_ID()
	}
	if p.region == "" {
		p.region = *awscdk.Aws_REGION()
	}
	return p
}

// resourceARN returns the ARN of a regional resource.
func (p place) resourceARN(service, resource string) string {
	return "arn:" + p.partition + ":" + service + ":" + p.region + ":" + p.account + ":" + resource
}

// iamARN returns the ARN of an IAM resource.
func (p place) iamARN(resource string) string {
	return "arn:" + p.partition + ":iam::" + p.account + ":" + resource
}

// domainSuffix returns the domain of the partition's services.
func (p place) domainSuffix() string {
	if p.partition == "aws-cn" {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

// queueURL returns the URL of a queue.
func (p place) queueURL(name string) string {
	return "https://sqs." + p.region + "." + p.domainSuffix() + "/" + p.account + "/" + name
}
