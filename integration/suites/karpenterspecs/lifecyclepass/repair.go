package lifecyclepass

import (
	"context"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

// legacyPolicies are the cloud provider's policies with which the legacy node repair replaces nodes, and Karpenter's limit.
func legacyPolicies() repair.PolicySet {
	out := repair.PolicySet{Unhealthy: intstr.FromString("20%")}
	for _, p := range current.cloud.RepairPolicies() {
		out.Policies = append(out.Policies, repair.Policy{
			Condition: p.ConditionType, Status: p.ConditionStatus, Reason: p.ReasonRegex, Toleration: p.TolerationDuration,
			GracePeriod: p.TerminationGracePeriod, Priority: p.Priority, Action: repair.RepairAction(p.Action),
		})
	}
	return out
}

// reboot calls Reboot for the instance. A refusal of EC2 is an answer; other errors are repeated.
func (s *system) reboot(ctx context.Context, body event.RebootRequested) error {
	claim := &karpv1.NodeClaim{}
	if err := current.client.Get(ctx, client.ObjectKey{Name: body.Claim}, claim); err != nil {
		return client.IgnoreNotFound(err)
	}
	settled := event.RebootSettled{InstanceID: body.InstanceID, Claim: body.Claim, ClaimUID: body.ClaimUID, Operation: body.Operation}
	err := current.cloud.Reboot(ctx, claim, body.Operation)
	switch {
	case cloudprovider.IsNodeRebootFailedError(err), cloudprovider.IsNodeRebootNotImplementedError(err), cloudprovider.IsNodeClaimNotFoundError(err):
		settled.Refusal = err.Error()
	case err != nil:
		return err
	}
	return s.handle(ctx, settled)
}
