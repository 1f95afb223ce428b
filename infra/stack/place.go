package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/joist-autoscaler/joist/infra/config"
)

// place is where the stack is deployed. Account and region are CloudFormation's own
// pseudo parameters where the config leaves them open.
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

// resourceARN is the name of a regional resource.
func (p place) resourceARN(service, resource string) string {
	return "arn:" + p.partition + ":" + service + ":" + p.region + ":" + p.account + ":" + resource
}

// iamARN is the name of a resource of IAM.
func (p place) iamARN(resource string) string {
	return "arn:" + p.partition + ":iam::" + p.account + ":" + resource
}

// domainSuffix ends the names of hosts.
func (p place) domainSuffix() string {
	if p.partition == "aws-cn" {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

// queueURL is a queue's address by its name.
func (p place) queueURL(name string) string {
	return "https://sqs." + p.region + "." + p.domainSuffix() + "/" + p.account + "/" + name
}
