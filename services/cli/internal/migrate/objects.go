package migrate

import (
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// checkFinalizers checks that nodes cannot be removed without their instances.
func checkFinalizers(f MigrationFacts) MigrationStep {
	var open, ending []string
	for i := range f.Claims {
		c := &f.Claims[i]
		if c.DeletionTimestamp != nil {
			ending = append(ending, "nodeclaim/"+c.Name)
		} else if !slices.Contains(c.Finalizers, karpenter.TerminationFinalizer) {
			open = append(open, "nodeclaim/"+c.Name)
		}
	}
	detail := simulate.FormatCount(len(f.Claims)-len(open)-len(ending), "NodeClaim") + " with the finalizer " + karpenter.TerminationFinalizer + ", which Joist uses too"
	if len(open) > 0 {
		detail += fmt.Sprintf("; lifecycle adds it to %d", len(open))
	}
	if len(ending) > 0 {
		detail += fmt.Sprintf("; Joist completes the removal of %d that are being deleted", len(ending))
	}
	return done(detail, append(open, ending...)...)
}

// checkTags checks that instances have the tags by which they are found.
func checkTags(f MigrationFacts) MigrationStep {
	var untagged, without []string
	for i := range f.Claims {
		c := &f.Claims[i]
		switch {
		case c.DeletionTimestamp != nil:
		case c.Status.ProviderID == "":
			without = append(without, "nodeclaim/"+c.Name)
		case c.Annotations[karpenter.InstanceTaggedAnnotationKey] != "true" || c.Annotations[karpenter.ClusterNameTaggedCompatibilityAnnotationKey] != "true":
			untagged = append(untagged, "nodeclaim/"+c.Name)
		}
	}
	switch {
	case len(without) > 0:
		return ready(simulate.FormatCount(len(without), "NodeClaim")+" without an instance yet: Karpenter is launching",
			"wait until they have one, or 5 minutes, and check again; an instance that no NodeClaim records is terminated by either controller", without...)
	case len(untagged) > 0:
		return done(simulate.FormatCount(len(untagged), "instance")+" without tags with the names of cluster, node or NodeClaim; lifecycle adds them", untagged...)
	}
	return done("the instances of all NodeClaims have the tags with the names of their cluster, node and NodeClaim")
}

// awsChecks are the checks of joist doctor that an installation next to Karpenter must pass.
var awsChecks = []string{
	"queue-missing", "dlq-missing", "redrive-missing", "redrive-wrong-dlq", "queue-policy-missing", "queue-policy-invalid", "rules-missing", "rule-missing",
	"rule-pattern-incomplete", "rule-input-path", "event-source-mapping-missing", "event-source-mapping-disabled", "function-missing", "function-settings-missing", "trust-function",
	"spot-role-missing", "node-role-missing", "node-role-trust", "node-access", "discovery-tag-missing",
	"role-missing", "role-permissions-missing", "trust-subject", "trust-issuer", "trust-pods", "pod-identity-missing", "pod-identity-role",
}

// findings returns doctor's problems of some checks.
func (f MigrationFacts) findings(checks ...string) []doctor.Finding {
	var out []doctor.Finding
	for _, found := range f.Findings {
		if found.Severity == doctor.Problem && slices.Contains(checks, found.Check) {
			out = append(out, found)
		}
	}
	return out
}

// blockedBy returns a step that doctor's findings block.
func blockedBy(found []doctor.Finding) MigrationStep {
	var objects []string
	for _, one := range found {
		objects = append(objects, one.Subject)
	}
	detail := found[0].Subject + ": " + found[0].Message
	if more := len(found) - 1; more > 0 {
		detail += fmt.Sprintf(" (and %d more problems: joist doctor)", more)
	}
	return blocked(detail, found[0].Fix, objects...)
}

// checkAWS checks Joist's resources in the account: roles, queues, rules and functions.
func checkAWS(f MigrationFacts) MigrationStep {
	if found := f.findings(awsChecks...); len(found) > 0 {
		return blockedBy(found)
	}
	if len(f.Skipped) > 0 {
		s := f.Skipped[0]
		detail := s.Subject + ": " + s.Reason
		if more := len(f.Skipped) - 1; more > 0 {
			detail += fmt.Sprintf(" (and %d more: joist doctor)", more)
		}
		return MigrationStep{State: Unknown, Detail: "could not read " + detail, Fix: s.Fix}
	}
	return done("the roles, queues, rules and functions of Joist exist")
}

// checkQueue compares the interruption queues of both.
func checkQueue(f MigrationFacts) MigrationStep {
	own, _ := f.Installation.Plan.Queue("interruption")
	d := f.karpenterDeployment()
	queue := ""
	if d != nil {
		queue = d.Environ[settings.Interruptions]
	}
	switch {
	case d == nil || d.Replicas == 0:
		return done("Joist consumes the queue "+own.Name, "queue/"+own.Name)
	case queue == "":
		return done("Karpenter handles no interruptions; Joist consumes the queue "+own.Name, "queue/"+own.Name)
	case queue == own.Name:
		return done(fmt.Sprintf("Joist and Karpenter consume the same queue %s: until Karpenter stops, a spot warning that Joist's function receives waits for Joist. Stop Karpenter within minutes after the stack is deployed, or give Joist its own queue (deploy/docs/migrate.md)", queue), "queue/"+queue)
	}
	return done(fmt.Sprintf("Karpenter consumes %s and Joist %s: each gets all events, so Karpenter's rules can remain until you remove Karpenter", queue, own.Name), "queue/"+own.Name, "queue/"+queue)
}
