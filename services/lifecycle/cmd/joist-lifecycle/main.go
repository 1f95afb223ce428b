// Command joist-lifecycle runs the lifecycle service in a cluster.
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
	"github.com/joist-autoscaler/joist/shared/host/build"
	"github.com/joist-autoscaler/joist/shared/host/profiling"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/host/startup"
	"github.com/joist-autoscaler/joist/shared/host/telemetry"
)

func main() {
	startup.RunService(startup.Service{
		Name:     "lifecycle",
		Purpose:  "joist-lifecycle writes Kubernetes objects, and admits NodeClaims and removals.",
		Required: []string{settings.Bucket, settings.QueueURL, settings.DeadLetterURL, settings.LauncherURL, settings.Holder},
		Profiles: profiling.Handler(),
		Optional: []string{settings.Profiling, settings.Prefix, settings.Namespace, settings.LeaseNamespace, settings.LeaseName, settings.SingleReplica, settings.Kubeconfig, settings.FeatureGates, settings.AWSGates, settings.LegacyRepair, settings.DisableDryRun,
			settings.RepairRules, settings.Unhealthy, settings.UnhealthyZone, settings.PoolApproval, settings.PriceLimit, settings.Rebalance, settings.ZonalShift,
			settings.MemoryOverhead, settings.ReservedENIs, settings.IgnoreDRA},
	}, run)
}

// watched are the kinds that a reconcile reads from the cache. All other objects are read live.
var watched = []cluster.Kind{
	cluster.Pods, cluster.Nodes, cluster.DisruptionBudgets, cluster.VolumeAttachments, cluster.VolumeClaims,
	cluster.NodePools, cluster.NodeClaims, cluster.NodeClasses,
}

// parallel is the number of concurrent writes of one reconcile. The client's rate limit applies
// in any case; concurrency helps when the API server is slow.
const parallel = 32

func run(ctx context.Context, p *startup.Bootstrap) error {
	kubecluster.SetLogger(p.Telemetry.Log)
	kubecluster.ObserveCalls(telemetry.KubernetesObserver{Telemetry: p.Telemetry})
	repairs, err := p.NewRepairMatcher()
	if err != nil {
		return err
	}
	config, err := kubecluster.Config(p.Kubeconfig, build.UserAgent("joist-lifecycle"))
	if err != nil {
		return err
	}
	client, err := kubecluster.New(config, "joist-lifecycle")
	if err != nil {
		return err
	}
	if p.Cluster, err = startup.IdentifyCluster(ctx, client, p.Cluster); err != nil {
		return err
	}
	kinds := watched
	if p.Scheduling.PlanDRARequests {
		kinds = append(kinds, cluster.ResourceSlices)
	}
	cache, err := client.NewCache(kubecluster.CacheOptions{Kinds: kinds, Trim: lifecycle.Trims()})
	if err != nil {
		return err
	}
	service := lifecycle.New(lifecycle.Config{
		Client: client, Cache: cache, Blobs: p.BlobStore(), Launcher: p.Queue(p.LauncherURL, settings.LauncherURL),
		Cluster: p.Cluster, Namespace: p.Namespace, KarpenterNamespace: p.LeaseNamespace, KarpenterLease: p.LeaseName, Holder: p.Holder, Alone: p.HasSingleReplica,
		Repair: repairs, LegacyRepair: p.FindLegacyRepair(), DeletionApproval: lifecycle.DeletionApproval(p.PoolDeletionApproval), PriceLimit: p.Scheduling.PriceLimit, Rebalance: lifecycle.RebalancePolicy(p.Rebalance),
		Settings: p.Scheduling, Catalogues: &blob.DocumentCache[catalog.Catalogue]{},
		Region: p.Region, ReservedCapacity: p.Scheduling.Gates.ReservedCapacity, DryRuns: p.DryRuns, ZonalShift: p.ZonalShift,
		CapacityBuffers: p.Scheduling.Gates.CapacityBuffer, StaticCapacity: p.Scheduling.Gates.StaticCapacity, PodDeletionCosts: p.PodDeletionCostManagement,
		Parallel: parallel, Rest: lifecycle.ReconcileInterval, Now: time.Now,
		Metrics: p.Telemetry.RecordMetric,
		Span:    p.Telemetry.RecordSpan,
	})
	// Reconciles and messages take turns, except notices. Only a leader handles any.
	gate := host.NewMutex()
	loop, feed := p.NewLoop(host.Loop{Reconcile: gate.WrapLocked(service.Step), Interval: lifecycle.ReconcileInterval, NextDue: service.NextRetry}, service.Reconciled, cache)
	inbox := p.NewWorker(p.NewEventHandler(lifecycle.Types, service.ConcurrentHandler(gate)))
	poll := p.NewPoll(inbox, host.Options{MaxConcurrent: lifecycle.MaxInFlight, Deadline: lifecycle.InboxTimeout, MayReceive: service.Leads})
	if err := p.Serve(ctx, cache); err != nil {
		return err
	}
	renewal := host.Loop{Reconcile: service.Renew, Interval: lease.RetryPeriod}
	return errors.Join(host.RunTogether(ctx, feed, loop, poll, renewal.Run), startup.RunAfterStop(ctx, service.Release))
}
