// Command joist-lifecycle runs the lifecycle service inside of a cluster.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/host/startup"
	"github.com/joist-autoscaler/joist/shared/host/telemetry"
)

func main() {
	startup.Main(startup.Service{
		Name:     "lifecycle",
		Purpose:  "joist-lifecycle writes Kubernetes, and is the one door for claims and removals.",
		Required: []string{settings.Bucket, settings.QueueURL, settings.DeadLetterURL, settings.LauncherURL, settings.Holder},
		Optional: []string{settings.Prefix, settings.Namespace, settings.LeaseNamespace, settings.LeaseName, settings.Alone, settings.Kubeconfig, settings.FeatureGates, settings.DisableDryRun,
			settings.RepairRules, settings.Unhealthy, settings.UnhealthyZone, settings.PoolGated, settings.PriceLimit, settings.Rebalance, settings.ZonalShift,
			settings.MemoryOverhead, settings.ReservedENIs},
	}, run)
}

// watched is what a step looks at. Everything else is read live at the door.
var watched = []cluster.Kind{
	cluster.Pods, cluster.Nodes, cluster.DisruptionBudgets, cluster.VolumeAttachments, cluster.VolumeClaims,
	cluster.NodePools, cluster.NodeClaims, cluster.NodeClasses,
}

// metrics are what the service's counts are called.
var metrics = map[lifecycle.Counted]telemetry.Metric{
	lifecycle.Decisions: telemetry.Decisions, lifecycle.PoolDecisions: telemetry.PoolDecisions,
	lifecycle.Invalid: telemetry.Invalid, lifecycle.QueueFailures: telemetry.QueueFailures,
	lifecycle.ClaimsCreated: telemetry.ClaimsCreated, lifecycle.NodesCreated: telemetry.NodesCreated, lifecycle.Initialized: telemetry.Initialized,
	lifecycle.ClaimsDisrupted: telemetry.ClaimsDisrupted, lifecycle.ClaimsTerminated: telemetry.ClaimsTerminated,
	lifecycle.ClaimTermination: telemetry.ClaimTermination, lifecycle.NodesTerminated: telemetry.NodesTerminated,
	lifecycle.NodeTermination: telemetry.NodeTermination, lifecycle.Overdue: telemetry.Overdue, lifecycle.SweepsStopped: telemetry.SweepsStopped,
	lifecycle.Usage: telemetry.Usage, lifecycle.Limit: telemetry.Limit, lifecycle.Cost: telemetry.Cost,
}

// parallel is how many writes of a look are under way at a time. The client keeps
// to its rate whatever this is; it is there for an API server that is slow.
const parallel = 32

func run(ctx context.Context, p *startup.Parts) error {
	kubecluster.LogTo(p.Telemetry.Log)
	config, err := kubecluster.Config(p.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubecluster.New(config, "joist-lifecycle")
	if err != nil {
		return err
	}
	if p.Cluster, err = startup.Identify(ctx, client, p.Cluster); err != nil {
		return err
	}
	cache, err := client.NewCache(kubecluster.CacheOptions{Kinds: watched})
	if err != nil {
		return err
	}
	service := lifecycle.New(lifecycle.Config{
		Client: client, Cache: cache, Blobs: p.Blobs(), Launcher: p.Queue(p.LauncherURL, settings.LauncherURL),
		Cluster: p.Cluster, Namespace: p.Namespace, KarpenterNamespace: p.LeaseNamespace, KarpenterLease: p.LeaseName, Holder: p.Holder, Alone: p.Alone,
		Repair: repair(p.Settings), Gate: lifecycle.DeletionApproval(p.PoolGate), PriceLimit: p.Scheduling.PriceLimit, Rebalance: lifecycle.Rebalance(p.Rebalance),
		Settings: p.Scheduling, Catalogues: &blob.Kept[catalog.Catalogue]{},
		Region: p.Region, ReservedCapacity: p.Scheduling.Gates.ReservedCapacity, DryRuns: p.DryRuns, ZonalShift: p.ZonalShift,
		CapacityBuffers: p.Scheduling.Gates.CapacityBuffer, StaticCapacity: p.Scheduling.Gates.StaticCapacity,
		Parallel: parallel, Rest: lifecycle.Pace, Now: time.Now,
		Count: func(what lifecycle.Counted, value float64, labels ...string) {
			p.Telemetry.Count(metrics[what], value, labels...)
		},
		Span: p.Telemetry.Span,
	})
	// Looks and facts take turns, notices do not, and only a leader takes any.
	gate := host.NewGate()
	loop, feed := p.Loop(host.Loop{Step: gate.Behind(service.Step), Pace: lifecycle.Pace, Next: service.Due}, service.Looked, cache)
	inbox := p.Worker(p.Events(lifecycle.Types, service.Lanes(gate)))
	poll := p.Poll(inbox, host.Options{Parallel: lifecycle.Inbox, Deadline: lifecycle.InboxDeadline, Allowed: service.Leads})
	if err := p.Serve(ctx, cache); err != nil {
		return err
	}
	renewal := host.Loop{Step: service.Renew, Pace: lease.RetryPeriod}
	return errors.Join(host.Together(ctx, feed, loop, poll, renewal.Run), startup.Resign(ctx, service.Release))
}

// repair is what the settings say of sick nodes; without the gate none is repaired.
func repair(s settings.Settings) lifecycle.NodeHealth {
	if !s.NodeRepair {
		return lifecycle.NodeHealth{}
	}
	return lifecycle.NodeHealth(s.Repair)
}
