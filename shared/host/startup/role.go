package startup

import (
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joist-autoscaler/joist/shared/aws/stsrole"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// assumeRole returns the AWS configuration with which a service works for a cluster: with the cluster's role if there
// is one.
func assumeRole(config aws.Config, role, service, cluster string) aws.Config {
	if role == "" {
		return config
	}
	return stsrole.AssumeRole(config, role, topology.RoleSessionName(service, cluster))
}
