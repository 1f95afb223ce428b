package nodeclaim

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// RebootAnnotation has the progress of a reboot that Karpenter's annotations and conditions do not have, as
// JSON.
const RebootAnnotation = "joist.sh/reboot"

// rebootProgress is the value of RebootAnnotation.
type rebootProgress struct {
	// Since is when the first request was sent.
	Since time.Time `json:"since"`
	// Issued is when EC2's acceptance, or a new boot, was first seen.
	Issued time.Time `json:"issued,omitzero"`
	// Refusal is why EC2 will not reboot the instance.
	Refusal string `json:"refusal,omitempty"`
	// Failure is why the claim is about to be deleted. It is written before the deletion, and a later answer or boot does
	// not undo it.
	Failure string `json:"failure,omitempty"`
}

// readProgress returns the progress of the claim's reboot. It is zero before the first request, and for a
// reboot that Karpenter began.
func readProgress(c *karpenter.NodeClaim) rebootProgress {
	var p rebootProgress
	if json.Unmarshal([]byte(c.Annotations[RebootAnnotation]), &p) != nil {
		return rebootProgress{}
	}
	return p
}

// writeProgress writes the progress into the claim.
func writeProgress(c *karpenter.NodeClaim, p rebootProgress) {
	text, _ := json.Marshal(p) // Times and a text can be encoded.
	c.Annotations = mergeMaps(c.Annotations, map[string]string{RebootAnnotation: string(text)})
}

// RemoveRebootProgress removes what earlier reboots left on the claim.
func RemoveRebootProgress(c *karpenter.NodeClaim) {
	delete(c.Annotations, RebootAnnotation)
	delete(c.Annotations, karpenter.RebootPreBootIDAnnotationKey)
}

// RecordRebootAnswer records EC2's answer to the requests of a reboot in the claim. It returns false for
// all answers but the first.
func RecordRebootAnswer(c *karpenter.NodeClaim, refusal string, now time.Time) bool {
	p := readProgress(c)
	if !p.Issued.IsZero() || p.Refusal != "" || p.Failure != "" {
		return false
	}
	if p.Refusal = refusal; refusal == "" {
		p.Issued = now
	}
	writeProgress(c, p)
	return true
}

// RebootOperation returns the name of the reboot that the claim's node is in: Karpenter's operation ID. It is
// empty before the boot ID is recorded and after EC2 has accepted the reboot.
func RebootOperation(c *karpenter.NodeClaim) string {
	requested, _ := c.Status.Conditions.Get(karpenter.ConditionTypeRebooting)
	boot, recorded := c.Annotations[karpenter.RebootPreBootIDAnnotationKey]
	if !recorded || requested.Status != "True" || requested.Reason != karpenter.RebootRequestedReason {
		return ""
	}
	return fmt.Sprintf("%s-%d-%s", c.UID, requested.LastTransitionTime.UnixNano(), boot)
}

// rebootGracePeriod returns the longest drain before the reboot; nil for no limit.
func rebootGracePeriod(c *karpenter.NodeClaim) (*time.Duration, error) {
	text, limited := c.Annotations[karpenter.RebootTerminationGracePeriodAnnotationKey]
	if !limited {
		return nil, nil
	}
	limit, err := time.ParseDuration(text)
	if err != nil || limit < 0 {
		return nil, fmt.Errorf("annotation %s is %q (use a duration of at least 0s)", karpenter.RebootTerminationGracePeriodAnnotationKey, text)
	}
	return &limit, nil
}
