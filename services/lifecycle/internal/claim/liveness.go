package claim

import "github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"

// RefusalAnnotation is what a launch was refused with, in words. It stands beside
// the mark that says whether the claim may go.
const RefusalAnnotation = "joist.sh/refusal"

// FailedAnnotation marks a claim that timed out, with the phase that it did not
// leave. It is written before the claim is deleted, so that whoever counts
// failures (B018) still sees it while the finalizer stands, whoever dies between.
const FailedAnnotation = "joist.sh/failed"

// Values of FailedAnnotation.
const (
	FailedLaunch       = "launch"
	FailedRegistration = "registration"
)

// failed gives up a claim that has not left a phase in time: first the mark,
// and in the next look the deletion.
func (v View) failed(phase, why string) []effect.Effect {
	if v.Claim.Annotations[FailedAnnotation] != "" {
		return v.remove(why)
	}
	claim := v.Claim.DeepCopy()
	claim.Annotations = merge(claim.Annotations, map[string]string{FailedAnnotation: phase})
	return []effect.Effect{effect.Update{Object: claim}}
}
