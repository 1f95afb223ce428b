package nodeclaim

import (
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

const (
	// LaunchTimeout is how long a claim may go without an instance, and how
	// long its launch is asked for.
	LaunchTimeout = 5 * time.Minute
	// RegistrationTimeout is how long it may go without a node.
	RegistrationTimeout = 15 * time.Minute
)

// RefusalAnnotation is what a launch was refused with, in words. It stands beside
// the mark that says whether the claim may go.
const RefusalAnnotation = launchspec.RefusalAnnotation

// FailedAnnotation marks a claim that timed out, with the phase that it did not
// leave. It is written before the claim is deleted, so that whoever counts
// failures still sees it while the finalizer stands, whoever dies between.
const FailedAnnotation = "joist.sh/failed"

// Values of FailedAnnotation.
const (
	FailedLaunch       = "launch"
	FailedRegistration = "registration"
)

// failed marks a claim that has not left a phase in time. The next look, which
// sees the mark, deletes it.
func (v View) failed(phase string) []effect.Effect {
	claim := v.Claim.DeepCopy()
	claim.Annotations = merge(claim.Annotations, map[string]string{FailedAnnotation: phase})
	return []effect.Effect{effect.Update{Object: claim}}
}
