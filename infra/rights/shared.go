package rights

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/topology"
)

// SharedFunctionPolicy is what the role of a function may that several clusters share: work on
// their queues of the service, and take their roles for it. What is done for a cluster is
// done with the cluster's own role, so no policy names two clusters but this one.
func SharedFunctionPolicy(service string, clusters ...Scope) Document {
	if len(clusters) == 0 {
		return Document{}
	}
	var queues, roles []string
	for _, s := range clusters {
		if own, ok := s.Plan.Queue(service); ok {
			queues = append(queues, s.resourceARN("sqs", own.Name))
		}
		roles = append(roles, s.Role(service))
	}
	return newDocument(append(clusters[0].functionStatements(service),
		allow("WorkOnQueues", []string{"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}, queues),
		allow("TakeClustersRoles", []string{"sts:AssumeRole"}, roles))...)
}

// isShared reports whether the service is a function that the cluster shares.
func (s Scope) isShared(service string) bool {
	return s.Plan.Shared() && slices.Contains(topology.Outside, service)
}

// SharedRole is the ARN of that function's role.
func (s Scope) SharedRole(service string) string { return s.iamARN("role/" + s.functionName(service)) }

// TrustShared lets the function that clusters share take the cluster's role, and says what
// it must call itself then: CloudTrail shows by whom and for whom the role was taken. The
// account is the principal, so that the function's role needs the right besides: a principal
// that is named takes a role without any.
func (s Scope) TrustShared(service string) Document {
	return newDocument(trustStatement("SharedFunction", Principal{"AWS": {s.iamARN("root")}}, []string{"sts:AssumeRole"}, allOf(
		newCondition("ArnEquals", "aws:PrincipalArn", s.SharedRole(service)),
		newCondition("StringEquals", "sts:RoleSessionName", topology.Session(service, s.Plan.Cluster)))))
}
