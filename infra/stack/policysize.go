package stack

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"

	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// placeholderPlace returns the place of the stack, with an account and region of maximum
// length if they are unknown, to check the size of policies before the deployment.
func placeholderPlace(c config.Config) place {
	return place{c.Partition, cmp.Or(c.Account, "111122223333"), cmp.Or(c.Region, "ap-southeast-1")}
}

// roleMax is IAM's limit of the characters of a role's inline policies, without white space (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html).
const roleMax = 10240

// checkPolicySizes rejects a cluster whose policies exceed IAM's limit. The launcher's policy
// repeats the cluster's name and the node tags in each condition.
func checkPolicySizes(c config.Config) error {
	at := placeholderPlace(c)
	s := sharedParts{config: c, place: at, bucket: bucketOf(c, at)}
	if len(c.Subnets) > 0 {
		s.network = &network{}
	}
	if c.SharedFunctions {
		s.functions = map[string]awslambda.CfnFunction{}
	}
	for _, k := range c.Clusters {
		p := clusterStack{sharedParts: s, cluster: k, rights: newScope(at, s.bucket, k)}
		for _, service := range slices.Concat(topology.ExternalServices, topology.ClusterServices, []string{topology.Scheduler}) {
			size := 0
			for _, document := range p.rolePolicies(service) {
				text, err := json.Marshal(document)
				if err != nil {
					panic("document of strings: " + err.Error())
				}
				size += len(text)
			}
			if size > roleMax {
				return fault.F("writing the policies of cluster "+k.Name, fault.Invalid, "the policies of the %s's role would have %d characters; IAM allows %d per role", service, size, roleMax).
					WithHint("list fewer nodeTags, give a shorter namePrefix, or have node classes name their instance profiles: nodeProfiles=instanceProfile")
			}
		}
	}
	return nil
}
