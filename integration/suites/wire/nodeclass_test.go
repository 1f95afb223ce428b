package wire

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/launcher"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// ensure makes a launcher process a node class message over HTTP, and returns its answer.
func (s site) ensure(t *testing.T, b event.NodeClassEnsure) event.NodeClassEnsured {
	t.Helper()
	broker := memqueue.New(memqueue.Options{Now: s.clock.Now})
	bus := broker.Queue("bus", memqueue.QueueOptions{})
	cluster := event.Cluster{Name: "web", UID: "uid"}
	service := launcher.Service{EC2: s.account, DryRun: s.account, Profiles: s.account, Bus: bus, Cluster: cluster, Now: s.clock.Now}
	e, err := event.Maker{Service: "lifecycle", Cluster: cluster}.New(s.clock.Now(), b, nil)
	if err == nil {
		err = service.Handle(t.Context(), e)
	}
	if err != nil {
		t.Fatal(err)
	}
	reported, err := bus.Receive(t.Context(), 1, 0, time.Minute)
	if err != nil || len(reported) != 1 {
		t.Fatalf("%d facts, %v", len(reported), err)
	}
	fact, err := event.Decode(reported[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	done, err := event.DecodeBody[event.NodeClassEnsured](fact)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// TestNodeClassOnTheWire creates a profile, makes dry runs of launches, and removes all
// of it.
func TestNodeClassOnTheWire(t *testing.T) {
	s := startCloud(t)
	class := karpenter.EC2NodeClass{}
	class.Name = "default"
	class.Status.AMIs = []karpenter.AMI{{ID: s.ImageAMD64.ID}}
	class.Status.SecurityGroups = []karpenter.SecurityGroup{{ID: s.SecurityGroup.ID}}
	class.Status.Subnets = []karpenter.Subnet{{ID: s.Subnets[0].ID, Zone: s.Subnets[0].Zone}}
	text, err := json.Marshal(class)
	if err != nil {
		t.Fatal(err)
	}
	ask := event.NodeClassEnsure{
		Name: "default", UID: "u", Role: "team/" + s.Role, Profile: "web_1", Path: "/karpenter/eu-west-1/web/u/", Class: text, InstanceType: testType,
		Tags: map[string]string{
			"kubernetes.io/cluster/web": "owned", "topology.kubernetes.io/region": "eu-west-1", "karpenter.k8s.aws/ec2nodeclass": "default",
		},
		Asked: s.clock.Now(),
	}
	if done := s.ensure(t, ask); done.Problem != nil || !done.Validated || done.Invalid != nil {
		t.Fatalf("got %+v", done)
	}
	if p, err := s.model.Profile(t.Context(), "web_1"); err != nil || p.Role != s.Role || p.Path != ask.Path {
		t.Errorf("got profile %+v (%v)", p, err)
	}
	if n := len(s.model.Records()); n != 0 {
		t.Errorf("dry runs launched %d instances", n)
	}
	s.clock.Advance(time.Minute)
	for action, reason := range map[memcloud.Action]string{
		memcloud.CreateTemplate: event.CreateLaunchTemplateAuthCheckFailed, memcloud.CreateFleet: event.CreateFleetAuthCheckFailed,
		memcloud.RunInstances: event.RunInstancesAuthCheckFailed,
	} {
		s.model.Deny(action)
		if done := s.ensure(t, ask); !done.Validated || done.Invalid == nil || done.Invalid.Reason != reason {
			t.Errorf("without %s got %+v", action, done)
		}
		s.model.Allow(action)
		s.clock.Advance(time.Minute)
	}
	ask.Delete = true
	if done := s.ensure(t, ask); !done.Deleted {
		t.Errorf("got %+v", done)
	}
	if _, err := s.model.Profile(t.Context(), "web_1"); err == nil {
		t.Error("the profile still exists")
	}
	if left, err := s.model.Templates(t.Context(), nil); err != nil || len(left) != 0 {
		t.Errorf("templates remain: %v, %v", left, err)
	}
}
