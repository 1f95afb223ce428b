package repair

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The reasons of AcceleratedHardwareReady that EKS's node monitoring agent gives for GPU errors: errors that a reboot
// can clear, and errors of broken hardware. Karpenter's AWS provider: pkg/cloudprovider/cloudprovider.go.
const (
	clearableErrors = `.*XID(46|48|54|62|63|95|109|110|136|140|143|155|156|158).*`
	fatalErrors     = `.*XID(64|74|79|119|120).*`
)

const acceleratedHardware corev1.NodeConditionType = "AcceleratedHardwareReady"

// Provider returns the policies of Karpenter's AWS provider: conditions from the kubelet and from EKS's node monitoring
// agent. With reboot, GPU errors that a reboot can clear reboot the node.
func Provider(reboot bool) []Policy {
	clearable := Replace
	if reboot {
		clearable = Reboot
	}
	return []Policy{
		replaceFor(corev1.NodeReady, corev1.ConditionFalse),
		replaceFor(corev1.NodeReady, corev1.ConditionUnknown),
		{Condition: acceleratedHardware, Status: corev1.ConditionFalse, Reason: clearableErrors, Toleration: 10 * time.Minute, GracePeriod: new(5 * time.Minute), Action: clearable},
		{Condition: acceleratedHardware, Status: corev1.ConditionFalse, Reason: fatalErrors, Toleration: 10 * time.Minute, GracePeriod: new(5 * time.Minute), Action: Replace},
		{Condition: acceleratedHardware, Status: corev1.ConditionFalse, Toleration: 30 * time.Minute, GracePeriod: new(10 * time.Minute), Action: Replace},
		replaceFor("StorageReady", corev1.ConditionFalse),
		replaceFor("NetworkingReady", corev1.ConditionFalse),
		replaceFor("KernelReady", corev1.ConditionFalse),
		replaceFor("ContainerRuntimeReady", corev1.ConditionFalse),
	}
}

// replaceFor returns the policy that replaces a node after 30 minutes of the condition, for any reason.
func replaceFor(condition corev1.NodeConditionType, status corev1.ConditionStatus) Policy {
	return Policy{Condition: condition, Status: status, Reason: ".*", Toleration: 30 * time.Minute, GracePeriod: new(10 * time.Minute), Action: Replace}
}

// LegacyProvider returns the policies of Karpenter 1.14's AWS provider, for LEGACY_NODE_REPAIR.
func LegacyProvider() []Policy {
	var out []Policy
	for _, p := range Provider(false) {
		if p.Condition == acceleratedHardware {
			if p.Reason != "" {
				continue
			}
			p.Toleration = 10 * time.Minute
		}
		p.Reason, p.GracePeriod = "", nil
		out = append(out, p)
	}
	return out
}

// Parse parses a list of rules: condition=status:duration, separated by commas. Each rule replaces a node after that
// time, for any reason of its condition, and limits the drain to ten minutes.
func Parse(text string) ([]Policy, error) {
	var policies []Policy
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		rule, after, hasTime := strings.Cut(item, ":")
		condition, status, hasStatus := strings.Cut(rule, "=")
		if !hasTime || !hasStatus || condition == "" {
			return nil, fmt.Errorf("%q does not have the form condition=status:duration, such as Ready=False:30m", item)
		}
		switch corev1.ConditionStatus(status) {
		case corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown:
		default:
			return nil, fmt.Errorf("%q has the unknown status %q (use True, False or Unknown)", item, status)
		}
		toleration, err := time.ParseDuration(after)
		if err != nil || toleration < 0 {
			return nil, fmt.Errorf("%q has no duration, such as 30m, after its colon", item)
		}
		p := replaceFor(corev1.NodeConditionType(condition), corev1.ConditionStatus(status))
		p.Toleration = toleration
		policies = append(policies, p)
	}
	if len(policies) == 0 {
		return nil, fmt.Errorf("%q has no rule, such as Ready=False:30m", text)
	}
	// A set needs a fallback. This one never applies, because the rules match every reason.
	fallback := policies[0]
	fallback.Reason = ""
	return append(policies, fallback), nil
}
