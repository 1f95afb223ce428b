package nodeclaim

import (
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

const (
	// LaunchTimeout is how long a claim may exist without an instance, and how long its launch is
	// requested.
	LaunchTimeout = 5 * time.Minute
	// RegistrationTimeout is how long it may exist without a registered node.
	RegistrationTimeout = 15 * time.Minute
)

// RefusalAnnotation is the error of a failed launch, as text. Another annotation determines whether
// the claim may be deleted.
const RefusalAnnotation = launchspec.RefusalAnnotation

// FailedAnnotation marks a claim that timed out, with the phase that it did not complete. It is
// written before the claim is deleted, so that failures can be counted while the finalizer exists,
// even after a crash.
const FailedAnnotation = "joist.sh/failed"

// Values of FailedAnnotation.
const (
	FailedLaunch       = "launch"
	FailedRegistration = "registration"
)

// markFailed marks a claim that has not completed a phase in time. The next reconcile deletes it
// because of the mark.
func (v View) markFailed(phase string) []effect.Effect {
	claim := v.Claim.DeepCopy()
	claim.Annotations = mergeMaps(claim.Annotations, map[string]string{FailedAnnotation: phase})
	return []effect.Effect{effect.Update{Object: claim}}
}
