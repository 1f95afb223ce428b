package sim

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/integration/suites/protocol"
	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// tracePromise is broken by a write or a launch that no step of a model explains.
const tracePromise = "every trace is a path of the models"

// pathChecker compares what happens to each NodeClaim with the models of suites/protocol: its creation, admission, launch, binding
// and deletion, and the proposal, marks and taint of its disruption.
type pathChecker struct {
	// launches and disruptions are the last views, by the names of NodeClaims.
	launches    map[string]protocol.LaunchView
	disruptions map[string]protocol.DisruptionView
	// proposals are the ids of the last proposals, and taints the taints of nodes.
	proposals map[string]string
	taints    map[string]nodeTaints
	// launched are the intents that EC2 has launched.
	launched map[string]bool
}

func newPathChecker() pathChecker {
	return pathChecker{
		launches: map[string]protocol.LaunchView{}, disruptions: map[string]protocol.DisruptionView{},
		proposals: map[string]string{}, taints: map[string]nodeTaints{}, launched: map[string]bool{},
	}
}

// observeWrite compares one write of a NodeClaim or of a node. It follows disruptionChecker.observeWrite.
func (p *pathChecker) observeWrite(c *checker, e memcluster.Effect) {
	if c.hostile != nil {
		return // An attacker writes what no service does.
	}
	before, _ := e.Before.(*karpenter.NodeClaim)
	after, isClaim := e.After.(*karpenter.NodeClaim)
	if before != nil || isClaim {
		p.checkClaim(c, e, before, after)
		return
	}
	if node, ok := e.After.(*corev1.Node); ok {
		has := func(t corev1.Taint) bool { return karpenter.HasTaint(node.Spec.Taints, t) }
		p.observeNode(c, node.Name, nodeTaints{has(karpenter.DisruptedTaint()), has(karpenter.RebootingTaint())}, e.Actor)
	} else if _, ok := e.Before.(*corev1.Node); ok {
		p.observeNode(c, e.Key.Name, nodeTaints{}, e.Actor)
	}
}

// nodeTaints are the taints of a node that disruptions and reboots write.
type nodeTaints struct{ isDisrupted, isRebooting bool }

func (p *pathChecker) observeNode(c *checker, name string, taints nodeTaints, actor string) {
	if p.taints[name] == taints {
		return
	}
	p.taints[name] = taints
	for _, claim := range c.disruptions.claims {
		if claim.Status.NodeName == name {
			p.compareDisruption(c, claim.Name, p.viewDisruption(c, claim), actor)
		}
	}
}

// checkClaim compares a write of a NodeClaim. One that is removed without a finalizer is deleted and removed at once.
func (p *pathChecker) checkClaim(c *checker, e memcluster.Effect, before, after *karpenter.NodeClaim) {
	name := e.Key.Name
	if after == nil {
		if before.DeletionTimestamp == nil {
			deleted := p.launches[name]
			deleted.IsDeleting = true
			p.compareLaunch(c, name, deleted, e.Actor)
			p.compareDisruption(c, name, protocol.DisruptionView{Exists: true, IsDeleting: true}, e.Actor)
		}
		p.compareLaunch(c, name, protocol.LaunchView{IsLaunched: p.launched[before.Annotations[intentTag]]}, e.Actor)
		p.compareDisruption(c, name, protocol.DisruptionView{}, e.Actor)
		delete(p.disruptions, name)
		delete(p.proposals, name)
		return
	}
	p.compareLaunch(c, name, p.viewLaunch(after), e.Actor)
	view := p.viewDisruption(c, after)
	if before != nil && before.DeletionTimestamp == nil && after.DeletionTimestamp != nil {
		view.ForCommand = isForCommand(c, e, before)
	}
	p.compareDisruption(c, name, view, e.Actor)
	if after.Status.Conditions.IsTrue("Initialized") && (before == nil || !before.Status.Conditions.IsTrue("Initialized")) {
		for _, other := range c.disruptions.claims {
			p.compareDisruption(c, other.Name, p.viewDisruption(c, other), e.Actor)
		}
	}
}

// isForCommand reports whether lifecycle deletes a NodeClaim because its command ends.
func isForCommand(c *checker, e memcluster.Effect, before *karpenter.NodeClaim) bool {
	acting, ok := confirmedProposal(before)
	return ok && strings.HasPrefix(e.Actor, "lifecycle-") && !c.mustGo(before, acting)
}

func (p *pathChecker) viewLaunch(claim *karpenter.NodeClaim) protocol.LaunchView {
	return protocol.LaunchView{
		Exists: true, IsDeleting: claim.DeletionTimestamp != nil, IsAdmitted: claim.Annotations["joist.sh/admitted"] != "",
		IsBound: claim.Status.ProviderID != "", IsLaunched: p.launched[claim.Annotations[intentTag]],
	}
}

func (p *pathChecker) viewDisruption(c *checker, claim *karpenter.NodeClaim) protocol.DisruptionView {
	if claim.DeletionTimestamp != nil {
		return protocol.DisruptionView{Exists: true, IsDeleting: true}
	}
	taints := p.taints[claim.Status.NodeName]
	v := protocol.DisruptionView{
		Exists: true, IsMarked: claim.Status.Conditions.IsTrue("DisruptionReason"), IsTainted: taints.isDisrupted,
		Reboot: rebootStep(claim), IsRebootTainted: taints.isRebooting,
	}
	acting, isActing := confirmedProposal(claim)
	switch {
	case acting.ID == "":
	case !isActing:
		v.Proposal = protocol.ProposalWritten
	case acting.Reboot != "":
		v.Proposal = protocol.ProposalReboot
	case len(acting.Replacements) == 0:
		v.Proposal = protocol.ProposalConfirmed
	default:
		v.Proposal = protocol.ProposalReady
		for _, name := range acting.Replacements {
			if !c.disruptions.everInitialized[name] {
				v.Proposal = protocol.ProposalWaits
			}
		}
	}
	if before := p.proposals[claim.Name]; before != "" && acting.ID != "" && before != acting.ID {
		c.reportViolation(tracePromise, "NodeClaim %s has the proposal %s in place of %s", claim.Name, acting.ID, before)
	}
	p.proposals[claim.Name] = acting.ID
	return v
}

func rebootStep(claim *karpenter.NodeClaim) protocol.RebootStep {
	switch rebooting, _ := claim.Status.Conditions.Get("Rebooting"); {
	case rebooting.Status != "True":
		return protocol.RebootNone
	case rebooting.Reason == "RebootIssued":
		return protocol.RebootIssued
	default:
		return protocol.RebootRequested
	}
}

// observeCall remembers the intents that EC2 launches, in the order of the writes.
func (p *pathChecker) observeCall(c *checker, call embedded.Call) {
	if c.hostile != nil || call.Port != "cloud" || call.Verb != "create-fleet" || p.launched[call.About] {
		return
	}
	c.readClaims()
	for _, r := range c.world.Cloud.Records() {
		if r.Tags[intentTag] != call.About {
			continue
		}
		p.launched[call.About] = true
		for _, claim := range c.lastClaims {
			if claim.Annotations[intentTag] == call.About {
				p.compareLaunch(c, claim.Name, p.viewLaunch(claim), call.Actor)
			}
		}
		return
	}
}

func (p *pathChecker) compareLaunch(c *checker, name string, view protocol.LaunchView, actor string) {
	before := p.launches[name]
	if p.launches[name] = view; !protocol.AllowsLaunchStep(before, view) {
		c.reportViolation(tracePromise, "%s takes NodeClaim %s from %q to %q, which no step of a launch does", actor, name, before, view)
	}
	c.occurrences["steps compared with a model"]++
}

func (p *pathChecker) compareDisruption(c *checker, name string, view protocol.DisruptionView, actor string) {
	before, known := p.disruptions[name]
	if p.disruptions[name] = view; view.ForCommand {
		view.ForCommand = false
		p.disruptions[name] = view
		view.ForCommand = true
	}
	if !known || !before.Exists {
		return
	}
	if !protocol.AllowsDisruptionStep(before, view) {
		c.reportViolation(tracePromise, "%s takes NodeClaim %s from %q to %q, which no step of a disruption does", actor, name, before, view)
	}
	c.occurrences["steps compared with a model"]++
}
