package launchspec_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// verify checks everything that was built with Verify, after a round trip through JSON, as lifecycle
// reads it.
func verify(t *testing.T, built launchspec.Built, s planning.Snapshot, cat catalog.Catalogue) {
	t.Helper()
	for i, intent := range built.Intents {
		if err := launchspec.Verify(again(t, built.Plan.Intents[i]), again(t, intent), s, cat); err != nil {
			t.Errorf("intent %d: %v", i, err)
		}
	}
}

func again[T any](t *testing.T, value T) T {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out T
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestVerifyRejects checks that Verify rejects everything that does not follow from the NodePool, the
// node class and the catalogue.
func TestVerifyRejects(t *testing.T) {
	type plan struct {
		planned *planning.PlannedIntent
		intent  *launchspec.Intent
	}
	first := func(p plan) *karpenter.NodeClaim { return &p.planned.Claims[0].Object }
	renamed := func(change func(*cloud.Template)) func(plan) {
		return func(p plan) {
			before := p.intent.Templates[0].Name
			change(&p.intent.Templates[0])
			p.intent.Templates[0].Name = launchspec.TemplateName(p.intent.Templates[0])
			for i := range p.intent.Fleet.Configs {
				if p.intent.Fleet.Configs[i].Template == before {
					p.intent.Fleet.Configs[i].Template = p.intent.Templates[0].Name
				}
			}
		}
	}
	const differs = "differs from the one for EC2NodeClass default and NodePool default"
	for _, tt := range []struct {
		name   string
		change func(plan)
		want   string
	}{
		{"nothing", func(plan) {}, ""},
		{"an image", renamed(func(c *cloud.Template) { c.ImageID = "ami-evil" }), differs},
		{"user data", renamed(func(c *cloud.Template) { c.UserData = "Y3VybCBldmls" }), differs},
		{"an instance profile", renamed(func(c *cloud.Template) { c.InstanceProfile = "admin" }), differs},
		{"security groups", renamed(func(c *cloud.Template) { c.SecurityGroups = []string{"sg-open"} }), differs},
		{"a public address", renamed(func(c *cloud.Template) { c.PublicIP = new(true) }), differs},
		{"metadata without tokens", renamed(func(c *cloud.Template) { c.Metadata.Tokens = "optional" }), differs},
		{"a snapshot", renamed(func(c *cloud.Template) { c.BlockDevices[0].Snapshot = "snap-other" }), differs},
		{"a template of another name", func(p plan) { p.intent.Templates[0].Name += "x" }, "is not in the document"},
		{"content that does not match its name", func(p plan) { p.intent.Templates[0].UserData = "x" }, differs},
		{"one more template", func(p plan) {
			more := p.intent.Templates[0]
			more.ImageID = "ami-evil"
			more.Name = launchspec.TemplateName(more)
			p.intent.Templates = append(p.intent.Templates, more)
		}, differs},
		{"a subnet", func(p plan) { p.intent.Fleet.Configs[0].Overrides[0].SubnetID = "subnet-other" }, "has no subnet"},
		{"a zone", func(p plan) { p.intent.Fleet.Configs[0].Overrides[0].Zone = "ap-northeast-2b" }, "has no subnet"},
		{"an image in an override", func(p plan) { p.intent.Fleet.Configs[0].Overrides[0].ImageID = "ami-evil" }, "sets an image"},
		{"a type that the claims do not allow", func(p plan) { p.intent.Fleet.Configs[0].Overrides[0].InstanceType = "p5.48xlarge" }, "p5.48xlarge"},
		{"claims for types that the NodePool does not allow", func(p plan) {
			for i := range p.planned.Claims {
				p.planned.Claims[i].Object.Spec.Requirements = nil
			}
		}, "its NodeClaims require"},
		{"more instances", func(p plan) { p.intent.Fleet.Count = 50 }, "launches 50 instances"},
		{"another token", func(p plan) { p.intent.Fleet.Token = "x" }, `token "x"`},
		{"another cluster", func(p plan) { p.intent.Cluster = "other" }, `cluster "other"`},
		{"a tag", func(p plan) { p.intent.Fleet.TagSets[0].Tags["admin"] = "true" }, "the tags of the fleet"},
		{"another NodePool in the plan", func(p plan) { p.planned.NodePool = "big" }, `for NodePool "default"`},
		{"another NodePool", func(p plan) { p.planned.NodePool, p.intent.NodePool = "big", "big" }, `NodePool "big" does not use`},
		{"another node class", func(p plan) { p.intent.NodeClass = "other" }, `does not use EC2NodeClass "other"`},
		{"another capacity type", func(p plan) { p.intent.Fleet.CapacityType = "reserved" }, "reserved"},
		{"no override", func(p plan) { p.intent.Fleet.Configs = nil }, "no override"},
		{"no NodeClaim", func(p plan) { p.planned.Claims = nil }, "no NodeClaim"},
		{"a claim of another NodePool", func(p plan) { first(p).Labels[karpenter.NodePoolLabelKey] = "big" }, "its labels differ"},
		{"an admitted claim", func(p plan) { first(p).Annotations["joist.sh/admitted"] = "2026-01-01T00:00:00Z" }, "its annotations differ"},
		{"a claim with a price", func(p plan) { first(p).Annotations[planning.PriceAnnotation] = "0" }, "its annotations differ"},
		{"a claim without a finalizer", func(p plan) { first(p).Finalizers = nil }, "its other metadata"},
		{"a claim without taints", func(p plan) { first(p).Spec.Taints = []corev1.Taint{{Key: "x", Effect: "NoSchedule"}} }, "its spec differs"},
		{"a claim of another name", func(p plan) { first(p).Name = "web" }, "its name differs"},
		{"no ceiling", func(p plan) { p.planned.Claims[0].Ceiling = nil }, "usage for limits"},
		{"a ceiling of zero", func(p plan) { p.planned.Claims[0].Ceiling[corev1.ResourceCPU] = resource.MustParse("0") }, "usage for limits"},
		{"a negative ceiling", func(p plan) { p.planned.Claims[0].Ceiling[corev1.ResourceCPU] = resource.MustParse("-4") }, "usage for limits"},
		{"a ceiling with a price of zero", func(p plan) { p.planned.Claims[0].Ceiling[planning.PriceResource] = resource.MustParse("0") }, "usage for limits"},
		{"types with a size of zero", func(p plan) {
			for name, facts := range p.intent.Types {
				facts.Capacity[corev1.ResourceCPU] = resource.MustParse("0")
				p.intent.Types[name] = facts
			}
		}, "with 0 of cpu"},
		{"types with a negative size", func(p plan) {
			for _, facts := range p.intent.Types {
				facts.Capacity["example.com/thing"] = resource.MustParse("-9")
			}
		}, "-9 of example.com/thing"},
		{"types with other labels", func(p plan) {
			for _, facts := range p.intent.Types {
				facts.Labels["node-role.kubernetes.io/admin"] = "true"
			}
		}, "other labels"},
		{"types without facts", func(p plan) { p.intent.Types = nil }, "with "},
		{"prices of zero", func(p plan) {
			for at := range p.intent.Prices {
				p.intent.Prices[at] = 0
			}
		}, "of $0 per hour"},
		{"no prices", func(p plan) { p.intent.Prices = nil }, "of $0 per hour"},
		{"negative prices", func(p plan) {
			for at := range p.intent.Prices {
				p.intent.Prices[at] = -1
			}
		}, "of $-1 per hour"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch, cat := seed(), planningtest.NewCatalogue()
			built := build(t, batch)
			planned, intent := again(t, built.Plan.Intents[0]), again(t, built.Intents[0])
			tt.change(plan{&planned, &intent})
			err := launchspec.Verify(planned, intent, batch.Snapshot, cat)
			if (err != nil) != (tt.want != "") || err != nil && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestVerifyComparesWithTheNodeClass checks that an intent is compared with the current node class.
func TestVerifyComparesWithTheNodeClass(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*karpenter.NodePool, *karpenter.EC2NodeClass)
	}{
		{"other images", func(_ *karpenter.NodePool, c *karpenter.EC2NodeClass) {
			for i := range c.Status.AMIs {
				c.Status.AMIs[i].ID = "ami-newer"
			}
		}},
		{"other user data", func(_ *karpenter.NodePool, c *karpenter.EC2NodeClass) { c.Spec.UserData = new("#!/bin/sh\n") }},
		{"another profile", func(_ *karpenter.NodePool, c *karpenter.EC2NodeClass) { c.Spec.InstanceProfile = new("other") }},
		{"other security groups", func(_ *karpenter.NodePool, c *karpenter.EC2NodeClass) {
			c.Status.SecurityGroups = []karpenter.SecurityGroup{{ID: "sg-other"}}
		}},
		{"other subnets", func(_ *karpenter.NodePool, c *karpenter.EC2NodeClass) {
			for i := range c.Status.Subnets {
				c.Status.Subnets[i].ID += "-other"
			}
		}},
		{"other taints", func(p *karpenter.NodePool, _ *karpenter.EC2NodeClass) {
			p.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "x", Effect: "NoSchedule"}}
		}},
	} {
		batch := seed()
		built := build(t, batch)
		s := again(t, batch.Snapshot)
		tt.change(&s.NodePools[0], &s.NodeClasses[0])
		if err := launchspec.Verify(built.Plan.Intents[0], built.Intents[0], s, planningtest.NewCatalogue()); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestVerifyOfReportedMemory checks that a plan may count the memory that nodes report, however low, and no less than a tenth below that.
func TestVerifyOfReportedMemory(t *testing.T) {
	for _, tt := range []struct {
		name string
		// planned and live are the shares of EC2's memory that the nodes of the plan's snapshot and of the cluster report; 0 for no node.
		planned, live float64
		refused       bool
	}{
		{"no nodes", 0, 0, false},
		{"more than the estimate", 0.98, 0.98, false},
		{"less than the estimate", 0.8, 0.8, false},
		{"far less than the estimate", 0.4, 0.4, false},
		{"the node has joined since", 0, 0.4, false},
		{"the node has left since", 0.4, 0, true},
		{"the node has left since, and reported nearly the estimate", 0.88, 0, false},
		{"less than nodes report", 0.4, 0.5, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch, cat := seed(), planningtest.NewCatalogue()
			class := &batch.Snapshot.NodeClasses[0]
			report := func(share float64) (nodes []planning.Node) {
				for _, one := range instancetypes.New(batch.Snapshot, cat).ByNodeClass[class.Name] {
					hardware, _ := cat.Find(one.Name)
					image, _ := instancetypes.FindImage(one.Labels, class.Status.AMIs)
					memory := resource.NewQuantity(int64(float64(hardware.MemoryMiB)*share)<<20, resource.BinarySI)
					nodes = append(nodes, planning.Node{
						Name: "node-" + one.Name, Image: image.ID, Initialized: true, Labels: map[string]string{corev1.LabelInstanceTypeStable: one.Name},
						Capacity: corev1.ResourceList{corev1.ResourceMemory: *memory},
					})
				}
				return nodes
			}
			live := batch.Snapshot
			batch.Snapshot.Nodes, live.Nodes = report(tt.planned), report(tt.live)
			built := build(t, batch)
			err := launchspec.Verify(built.Plan.Intents[0], built.Intents[0], live, cat)
			if (err != nil) != tt.refused || err != nil && !strings.Contains(err.Error(), "of memory") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestVerifyRefusesOtherProviders checks a plan for a NodePool of EKS Auto Mode, whose node class has the name of an EC2NodeClass.
func TestVerifyRefusesOtherProviders(t *testing.T) {
	batch, cat := seed(), planningtest.NewCatalogue()
	result := solver.Solve(batch, cat)
	batch.Snapshot.NodePools[0].Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: "eks.amazonaws.com", Kind: "NodeClass", Name: "default"}
	built, err := launchspec.Build(batch, event.Ref{}, result, cat)
	if err != nil {
		t.Fatal(err)
	}
	if err := launchspec.Verify(built.Plan.Intents[0], built.Intents[0], batch.Snapshot, cat); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "does not use EC2NodeClass") {
		t.Errorf("got %v", err)
	}
}
