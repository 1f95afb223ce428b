package nodeclass

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	validated = karpenter.ConditionTypeValidationSucceeded
	// awaiting begins the messages of a condition that waits. Who says them is
	// lifecycle alone, so they tell its waiting from a judgement.
	awaiting = "waiting for "
)

// needs are the conditions without which there is nothing to try.
var needs = []string{
	karpenter.ConditionTypeSubnetsReady, karpenter.ConditionTypeSecurityGroupsReady,
	karpenter.ConditionTypeAMIsReady, karpenter.ConditionTypeInstanceProfileReady,
}

// judge is the catalog's judgement. It overrules the dry runs; where it finds
// nothing, theirs stands, and its own former one falls.
func (e *editor) judge(p *event.Problem) {
	have, known := e.known(validated)
	switch {
	case p != nil && p.Unread && e.waiting():
		// There is no judgement yet that could be kept, and dry runs are to come.
	case p != nil && p.Unread:
		e.unread(validated, *p)
	case p != nil && !p.Warning:
		e.set(validated, metav1.ConditionFalse, p.Reason, p.Message)
	case !e.DryRuns:
		e.set(validated, metav1.ConditionTrue, warned(p), said(p))
	case !known || e.overruled():
		e.await(metav1.ConditionUnknown, karpenter.ReasonAwaitingReconciliation, "dry runs of CreateLaunchTemplate, CreateFleet and RunInstances")
	case have.Status == metav1.ConditionTrue:
		e.set(validated, metav1.ConditionTrue, warned(p), said(p))
	}
}

// dryRuns is the launcher's judgement, of this generation alone. One that was not
// made says nothing.
func (e *editor) dryRuns(b event.NodeClassEnsured) {
	if !e.DryRuns || !b.Validated || b.Generation != e.class.Generation || e.overruled() {
		return
	}
	have, known := e.known(validated)
	switch {
	case b.Invalid != nil:
		e.set(validated, metav1.ConditionFalse, b.Invalid.Reason, b.Invalid.Message)
	case !known || have.Status != metav1.ConditionTrue: // else it may say a warning
		e.set(validated, metav1.ConditionTrue, "", "")
	}
}

// overruled reports whether the catalog has found something that a dry run
// cannot see.
func (e *editor) overruled() bool {
	have, known := e.known(validated)
	return known && have.Status == metav1.ConditionFalse && slices.Contains([]string{
		event.TagValidationFailed, event.ClusterCIDRResolutionFailed, "RoleAndInstanceProfile",
	}, have.Reason)
}

// wait holds validation back while what it needs is not there.
func (e *editor) wait() {
	if !e.DryRuns || e.overruled() {
		return
	}
	var missing []string
	status := metav1.ConditionUnknown
	for _, kind := range needs {
		have, known := e.known(kind)
		if !known || have.Status != metav1.ConditionTrue {
			missing = append(missing, kind)
		}
		if known && have.Status == metav1.ConditionFalse {
			status = metav1.ConditionFalse
		}
	}
	have, there := e.class.Status.Conditions.Get(validated)
	switch {
	case len(missing) > 0:
		e.await(status, event.DependenciesNotReady, strings.Join(missing, ", "))
	case !there || have.ObservedGeneration != e.class.Generation || have.Reason == event.DependenciesNotReady && e.waiting():
		e.await(metav1.ConditionUnknown, karpenter.ReasonAwaitingReconciliation, "dry runs of CreateLaunchTemplate, CreateFleet and RunInstances")
	}
}

// waiting reports whether the condition waits, for this spec.
func (e *editor) waiting() bool {
	have, there := e.class.Status.Conditions.Get(validated)
	return there && have.ObservedGeneration == e.class.Generation && strings.HasPrefix(have.Message, awaiting)
}

func (e *editor) await(status metav1.ConditionStatus, reason, what string) {
	e.set(validated, status, reason, awaiting+what)
}

func warned(p *event.Problem) string {
	if p == nil {
		return ""
	}
	return p.Reason
}

func said(p *event.Problem) string {
	if p == nil {
		return ""
	}
	return p.Message
}

// Triable reports whether there is enough of the class to make dry runs with.
func Triable(class *karpenter.EC2NodeClass) bool {
	return !slices.ContainsFunc(needs, func(kind string) bool { return !holds(class, kind) })
}

// Validated reports whether this spec has passed.
func Validated(class *karpenter.EC2NodeClass) bool { return holds(class, validated) }

func holds(class *karpenter.EC2NodeClass, kind string) bool {
	have, there := class.Status.Conditions.Get(kind)
	return there && have.Status == metav1.ConditionTrue && have.ObservedGeneration == class.Generation
}

// Tried is the class as dry runs are to be made for it: what a launch would be
// made of, and nothing that changes by itself, so that the same class is the same
// text.
func Tried(class *karpenter.EC2NodeClass) (json.RawMessage, error) {
	out := karpenter.EC2NodeClass{Spec: class.Spec, Status: class.Status}
	out.Name = class.Name
	out.Status.Conditions = nil
	out.Status.Subnets = sortedSubnets(class.Status.Subnets)
	text, err := json.Marshal(out)
	if err != nil {
		return nil, fault.E("encoding EC2NodeClass "+class.Name, fault.Bug, err)
	}
	return text, nil
}
