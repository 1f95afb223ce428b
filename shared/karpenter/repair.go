package karpenter

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// RepairPolicy is a condition that makes a node unhealthy, and how long a node may have it before it is replaced.
type RepairPolicy struct {
	Condition corev1.NodeConditionType
	Status    corev1.ConditionStatus
	After     time.Duration
}

// RepairPolicies are Karpenter's: conditions from the kubelet and from EKS's node monitoring agent.
const RepairPolicies = "Ready=False:30m,Ready=Unknown:30m,AcceleratedHardwareReady=False:10m," +
	"StorageReady=False:30m,NetworkingReady=False:30m,KernelReady=False:30m,ContainerRuntimeReady=False:30m"

// String returns the policy in the format of ParseRepairPolicies.
func (p RepairPolicy) String() string {
	return fmt.Sprintf("%s=%s:%s", p.Condition, p.Status, p.After)
}

// ParseRepairPolicies parses a list such as RepairPolicies: condition=status:duration, separated by commas. With an
// empty list no node is unhealthy.
func ParseRepairPolicies(text string) ([]RepairPolicy, error) {
	var policies []RepairPolicy
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		rule, after, timed := strings.Cut(item, ":")
		condition, status, judged := strings.Cut(rule, "=")
		if !timed || !judged || condition == "" {
			return nil, fmt.Errorf("%q does not have the form condition=status:duration, such as Ready=False:30m", item)
		}
		switch corev1.ConditionStatus(status) {
		case corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown:
		default:
			return nil, fmt.Errorf("%q has the unknown status %q (use True, False or Unknown)", item, status)
		}
		duration, err := time.ParseDuration(after)
		if err != nil || duration < 0 {
			return nil, fmt.Errorf("%q has no duration, such as 30m, after its colon", item)
		}
		policies = append(policies, RepairPolicy{corev1.NodeConditionType(condition), corev1.ConditionStatus(status), duration})
	}
	return policies, nil
}
