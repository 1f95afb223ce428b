package karpenterbaseline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/operator/injection"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"

	"github.com/joist-autoscaler/joist/integration/environment/meter"
)

// Consolidate runs upstream's consolidation on a scenario until nothing changes. It
// modifies the scenario's pods and nodes.
//
// It calls upstream's methods for empty nodes, multiple nodes and single nodes in
// production's order, and applies each returned command at once. Two parts are left out,
// in Karpenter's favour: the wait of 15 s before a command with the simulation that
// follows it, and the methods for drift, which also examine all nodes. A Timeout ends it
// between two commands or within one, and the result is incomplete.
func Consolidate(ctx context.Context, s *Scenario, o Options) (*Consolidation, error) {
	ctx = quietly(injection.WithControllerName(ctx, "disruption"), o)
	limited, cancel := ctx, func() {}
	if o.Timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, o.Timeout)
	}
	defer cancel()
	f := &fleet{run: run{scenario: s, options: o, types: s.instanceTypes()}}
	for _, pool := range s.NodePools {
		pool.StatusConditions().SetTrue(karpv1.ConditionTypeValidationSucceeded)
		pool.StatusConditions().SetTrue(karpv1.ConditionTypeNodeClassReady)
	}
	f.out = f.before()
	for limited.Err() == nil && (o.Rounds == 0 || len(f.out.Rounds) < o.Rounds) {
		changed, err := f.pass(limited)
		switch {
		case !changed && limited.Err() != nil: // The method was interrupted, so its result means nothing.
		case err != nil:
			return nil, fmt.Errorf("consolidating %s with Karpenter: %w", s.Name, err)
		case !changed:
			f.out.Complete = true
			return f.after(), nil
		}
	}
	return f.after(), nil
}

// fleet is a scenario whose nodes change.
type fleet struct {
	run

	out *Consolidation
	// launched is the number of launched nodes.
	launched int
}

// pass calls the methods in order and applies the first command.
func (f *fleet) pass(ctx context.Context) (changed bool, err error) {
	if f.store, err = newStore(f.scenario, f.types); err != nil {
		return false, err
	}
	if f.cluster, err = newCluster(ctx, f.scenario, f.store); err != nil {
		return false, err
	}
	for _, n := range f.scenario.Nodes {
		claim := claimOf(f.store.nodes[n.Name])
		if n.Kept {
			claim.StatusConditions().SetFalse(karpv1.ConditionTypeConsolidatable, "NotConsolidatable", "NotConsolidatable")
		}
		f.cluster.UpdateNodeClaim(claim)
	}
	began := meter.Start()
	command, candidates, err := f.decide(ctx)
	spent := began.Stop()
	f.out.WallS, f.out.UserS, f.out.PeakRSSMB = f.out.WallS+spent.WallS, f.out.UserS+spent.UserS, spent.PeakRSSMB
	if err != nil || command == nil {
		return false, err
	}
	return true, f.carryOut(ctx, command, candidates, spent.UserS)
}

// decide runs one reconcile of the disruption controller.
func (f *fleet) decide(ctx context.Context) (command *disruption.Command, candidates int, err error) {
	real, clouds := clock.RealClock{}, &catalogue{types: f.types}
	provisioner := provisioning.NewProvisioner(f.store, quiet{}, clouds, f.cluster, real, nil, nil)
	queue := disruption.NewQueue(f.store, quiet{}, f.cluster, real, provisioner)
	c := disruption.MakeConsolidation(real, f.cluster, f.store, provisioner, clouds, quiet{}, queue)
	at := disruption.WithValidator(atOnce{})
	for _, method := range []disruption.Method{
		disruption.NewEmptiness(c, at), disruption.NewMultiNodeConsolidation(c, at), disruption.NewSingleNodeConsolidation(c, at),
	} {
		found, totals, err := disruption.GetCandidatesWithTotals(ctx, f.cluster, f.store, quiet{}, real, clouds, method.ShouldDisrupt, method.Class(), queue, nil)
		if err != nil {
			return nil, 0, fmt.Errorf("finding candidates: %w", err)
		}
		if len(found) == 0 {
			continue
		}
		if setter, ok := method.(disruption.NodePoolTotalsSetter); ok {
			setter.SetNodePoolTotals(totals)
		}
		budgets, err := disruption.BuildDisruptionBudgetMapping(ctx, f.cluster, real, f.store, clouds, quiet{}, method.Reason())
		if err != nil {
			return nil, 0, fmt.Errorf("reading the budgets: %w", err)
		}
		commands, err := method.ComputeCommands(ctx, budgets, found...)
		if err != nil {
			return nil, 0, fmt.Errorf("choosing among %d candidates by %s: %w", len(found), method.ConsolidationType(), err)
		}
		for i := range commands {
			if commands[i].Decision() != disruption.NoOpDecision {
				commands[i].Method = method
				return &commands[i], len(found), nil
			}
		}
	}
	return nil, 0, nil
}

// atOnce validates every command without a wait.
type atOnce struct{}

func (atOnce) Validate(_ context.Context, c disruption.Command, _ time.Duration) (disruption.Command, error) {
	return c, nil
}

// catalogue is a cloud provider that only lists instance types.
type catalogue struct {
	cloudprovider.CloudProvider

	types []*cloudprovider.InstanceType
}

func (c *catalogue) GetInstanceTypes(context.Context, *karpv1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return c.types, nil
}

func (c *catalogue) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&awsv1.EC2NodeClass{}}
}

// claimOf returns the claim of a node that has existed for a long time.
func claimOf(node *corev1.Node) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}}
	claim.Status.ProviderID, claim.Status.NodeName = node.Spec.ProviderID, node.Name
	claim.Status.Capacity, claim.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
	for _, condition := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized, karpv1.ConditionTypeConsolidatable} {
		claim.StatusConditions().SetTrue(condition)
	}
	return claim
}

// errLost is the error if upstream's command leaves a pod without a node.
var errLost = errors.New("the command leaves a pod unplaced")
