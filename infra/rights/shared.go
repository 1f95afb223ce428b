package rights

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/topology"
)

// SharedFunctionPolicy returns the permissions of a shared function's role: to consume the
// clusters' queues of the service, and to assume the clusters' roles. All work for a cluster
// uses the cluster's role, so only this policy names several clusters.
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

// isShared reports whether the service runs as a shared function.
func (s Scope) isShared(service string) bool {
	return s.Plan.HasSharedFunctions() && slices.Contains(topology.ExternalServices, service)
}

// SharedRole returns the ARN of the shared function's role.
func (s Scope) SharedRole(service string) string { return s.iamARN("role/" + s.functionName(service)) }

// TrustShared returns the trust policy that allows the shared function to assume the cluster's
// role, with a fixed session name, so that CloudTrail shows the function and the cluster. The
// principal is the account, so the function's role also needs sts:AssumeRole; a role named as
// the principal would not.
func (s Scope) TrustShared(service string) Document {
	return newDocument(trustStatement("SharedFunction", Principal{"AWS": {s.iamARN("root")}}, []string{"sts:AssumeRole"}, allOf(
		newCondition("ArnEquals", "aws:PrincipalArn", s.SharedRole(service)),
		newCondition("StringEquals", "sts:RoleSessionName", topology.RoleSessionName(service, s.Plan.Cluster)))))
}
