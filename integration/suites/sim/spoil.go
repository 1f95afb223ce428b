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

// spoil is a person who edits a claim right after its launch so that its intent cannot be
// read any more, and who starts an instance with the cluster's tags beside it. The claim
// cannot be bound until it is given up, and the instance is an orphan: it must end like
// any other orphan meanwhile.
func (s *sim) spoil(call embedded.Call, err error) {
	if !s.asks.spoils || s.checker.sagas.healed.IsZero() || err != nil || call.Port != "cloud" || call.Verb != "create-fleet" {
		return
	}
	for _, o := range s.list(cluster.NodeClaims) {
		claim := o.(*karpenter.NodeClaim)
		if claim.Annotations[intentTag] != call.About || claim.Status.ProviderID != "" || !s.launched(call.About) {
			continue
		}
		s.spoilClaim(claim)
		return
	}
}

// spoilClaim starts the instance and edits the claim. Where EC2 throttles the person, the next
// launch is tried.
func (s *sim) spoilClaim(claim *karpenter.NodeClaim) {
	switch err := s.stray(); {
	case fault.Is(err, fault.Throttled):
		return
	case err != nil:
		s.checker.violate("models work", "starting an instance by hand: %v", err)
	}
	s.asks.spoils = false
	s.faults["deed spoil"]++
	s.world.Kube.Change(cluster.NodeClaims, cluster.KeyOf(claim), func(o cluster.Object) { delete(o.GetAnnotations(), "joist.sh/intent-ref") })
}

// launched reports whether an instance of the intent lives.
func (s *sim) launched(intent string) bool {
	for _, r := range s.world.Cloud.Records() {
		if r.Tags[intentTag] == intent && r.Ended.IsZero() {
			return true
		}
	}
	return false
}

// stray starts an instance of a pool that does not exist.
func (s *sim) stray() error {
	const name = "stray"
	aws := s.world.AWS
	tags := map[string]string{"kubernetes.io/cluster/" + s.world.Cluster: "owned", "karpenter.sh/nodepool": name}
	template := cloud.Template{
		Name: name, ImageID: aws.ImageARM64.ID, InstanceProfile: aws.Profile, SecurityGroups: []string{aws.SecurityGroup.ID}, Tags: tags,
		Metadata: cloud.Metadata{Endpoint: "enabled", IPv6: "disabled", HopLimit: 1, Tokens: "required"},
	}
	if err := s.world.Cloud.EnsureTemplate(context.Background(), template); err != nil {
		return err
	}
	subnet := aws.Subnets[0]
	_, err := s.world.Cloud.CreateFleet(context.Background(), cloud.FleetRequest{
		Token: name, Count: 1, CapacityType: cloud.OnDemand, Strategy: "lowest-price", TagSets: []cloud.TagSet{{Resource: "instance", Tags: tags}},
		Configs: []cloud.FleetConfig{{Template: name, Overrides: []cloud.Override{{InstanceType: "t4g.medium", SubnetID: subnet.ID, Zone: subnet.Zone}}}},
	})
	return err
}

// forge is an attacker who may send to the launcher's queue, and who asks to end an instance
// without a word of the claim that has it. The launcher must refuse.
func (s *sim) forge() {
	if !s.asks.forges || s.checker.sagas.healed.IsZero() {
		return
	}
	for _, r := range s.world.Cloud.Records() {
		if claim := s.checker.claimOf(r.ID); claim == nil || claim.DeletionTimestamp != nil || !r.Ended.IsZero() {
			continue
		}
		s.asks.forges = false
		s.faults["deed forge"]++
		if err := s.sendForged(event.TerminateRequested{InstanceID: r.ID, Reason: "forged"}); err != nil {
			s.checker.violate("models work", "forging a request: %v", err)
		}
		return
	}
}

// sendForged puts a request in lifecycle's name into the launcher's queue.
func (s *sim) sendForged(body event.Body) error {
	e, err := event.Maker{Service: "lifecycle", Cluster: s.world.Identity()}.New(s.world.Now(), body, nil)
	if err != nil {
		return err
	}
	text, err := e.Encode()
	if err != nil {
		return err
	}
	launcher, ok := s.world.Broker.Lookup(s.world.Cluster + "-launcher")
	if !ok {
		return fault.F("forging a message", fault.Bug, "the launcher has no queue")
	}
	return launcher.Send(context.Background(), queue.Outgoing{Source: e.Source, Type: string(e.Type), Body: text})
}
