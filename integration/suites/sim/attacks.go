package sim

import (
	"context"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// corruptAfterLaunch edits a NodeClaim right after its launch, so that its intent cannot be read, and starts an
// instance with the tags of the cluster by hand. The NodeClaim cannot be bound, and the instance must be
// terminated like any other orphan.
func (s *sim) corruptAfterLaunch(call embedded.Call, err error) {
	if !s.settings.corruptsClaim || s.checker.disruptions.faultsEnd.IsZero() || err != nil || call.Port != "cloud" || call.Verb != "create-fleet" {
		return
	}
	for _, o := range s.listObjects(cluster.NodeClaims) {
		claim := o.(*karpenter.NodeClaim)
		if claim.Annotations[intentTag] != call.About || claim.Status.ProviderID != "" || !s.hasInstance(call.About) {
			continue
		}
		s.corruptClaim(claim)
		return
	}
}

// corruptClaim starts the instance and edits the NodeClaim. If EC2 throttles the call, the next launch is tried.
func (s *sim) corruptClaim(claim *karpenter.NodeClaim) {
	switch err := s.startOrphan(); {
	case fault.Is(err, fault.Throttled):
		return
	case err != nil:
		s.checker.reportViolation("models return no errors", "starting an instance by hand: %v", err)
	}
	s.settings.corruptsClaim = false
	s.faults["action spoil"]++
	s.world.Kube.ChangeObject(cluster.NodeClaims, cluster.KeyOf(claim), func(o cluster.Object) { delete(o.GetAnnotations(), "joist.sh/intent-ref") })
}

// hasInstance reports whether an instance of the intent runs.
func (s *sim) hasInstance(intent string) bool {
	for _, r := range s.world.Cloud.Records() {
		if r.Tags[intentTag] == intent && r.Ended.IsZero() {
			return true
		}
	}
	return false
}

// startOrphan starts an instance of a NodePool that does not exist.
func (s *sim) startOrphan() error {
	return s.startInstances("stray", map[string]string{"kubernetes.io/cluster/" + s.world.Cluster: "owned", "karpenter.sh/nodepool": "stray"}, 1)
}

// startInstances starts instances with these tags by hand. Calls with the same name start them once.
func (s *sim) startInstances(name string, tags map[string]string, count int) error {
	aws := s.world.AWS
	template := cloud.Template{
		Name: name, ImageID: aws.ImageARM64.ID, InstanceProfile: aws.Profile, SecurityGroups: []string{aws.SecurityGroup.ID}, Tags: tags,
		Metadata: cloud.Metadata{Endpoint: "enabled", IPv6: "disabled", HopLimit: 1, Tokens: "required"},
	}
	if err := s.world.Cloud.EnsureTemplate(context.Background(), template); err != nil {
		return err
	}
	subnet := aws.Subnets[0]
	_, err := s.world.Cloud.CreateFleet(context.Background(), cloud.FleetRequest{
		Token: name, Count: count, CapacityType: cloud.OnDemand, Strategy: "lowest-price", TagSets: []cloud.TagSet{{Resource: "instance", Tags: tags}},
		Configs: []cloud.FleetConfig{{Template: name, Overrides: []cloud.Override{{InstanceType: "t4g.medium", SubnetID: subnet.ID, Zone: subnet.Zone}}}},
	})
	return err
}

// forgeRequest sends a request to the launcher's queue that terminates an instance without its NodeClaim. The
// launcher must reject it.
func (s *sim) forgeRequest() {
	if !s.settings.forgesRequest || s.checker.disruptions.faultsEnd.IsZero() {
		return
	}
	for _, r := range s.world.Cloud.Records() {
		if claim := s.checker.findClaim(r.ID); claim == nil || claim.DeletionTimestamp != nil || !r.Ended.IsZero() {
			continue
		}
		s.settings.forgesRequest = false
		s.faults["action forge"]++
		if err := s.sendForged(event.TerminateRequested{InstanceID: r.ID, Reason: "forged"}); err != nil {
			s.checker.reportViolation("models return no errors", "forging a request: %v", err)
		}
		return
	}
}

// sendForged sends a request in the name of lifecycle to the launcher's queue.
func (s *sim) sendForged(body event.Body) error {
	e, err := event.Maker{Service: "lifecycle", Cluster: s.world.Identity()}.New(s.world.Now(), body, nil)
	if err != nil {
		return err
	}
	text, err := e.Encode()
	if err != nil {
		return err
	}
	launcher, ok := s.world.Broker.FindQueue(s.world.Cluster + "-launcher")
	if !ok {
		return fault.F("forging a message", fault.Bug, "the launcher has no queue")
	}
	return launcher.Send(context.Background(), queue.Outgoing{Source: e.Source, Type: string(e.Type), Body: text})
}
