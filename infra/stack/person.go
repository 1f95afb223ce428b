package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/infra/rights"
)

// addPersonPolicies adds the operator's and the replayer's policy. They are attached to no
// role, because the account manages its users.
func (p clusterStack) addPersonPolicies() {
	for _, person := range []struct {
		name, title, description string
		write                    func() (rights.Document, error)
	}{
		{"operator", "Operator", "To inspect Joist in the cluster " + p.cluster.Name + ": joist queues, dead and doctor, and dry runs of replay", p.rights.OperatorPolicy},
		{"replayer", "Replayer", "To replay DLQ messages of Joist in the cluster " + p.cluster.Name + ", in addition to the operator's policy: joist replay --yes", p.rights.ReplayerPolicy},
	} {
		document, err := person.write()
		if err != nil {
			// New has validated the scope.
			panic(err)
		}
		policy := awsiam.NewCfnManagedPolicy(p.scope, jsii.String(person.title+"Policy"), &awsiam.CfnManagedPolicyProps{
			ManagedPolicyName: jsii.String(p.cluster.Plan.Prefix + "-joist-" + person.name), Description: jsii.String(person.description), PolicyDocument: policyMap(document),
		})
		suppress(policy, personSuppressions...)
		p.addOutput(person.title+"PolicyArn", person.description, *policy.Ref())
	}
}
