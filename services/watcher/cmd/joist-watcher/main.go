// Command joist-watcher runs the watcher service inside a cluster.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/joist-autoscaler/joist/services/watcher"
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
		Name:     "watcher",
		Purpose:  "joist-watcher reads the Kubernetes API and sends batches of unschedulable pods to the planner.",
		Required: []string{settings.Bucket, settings.PlannerURL, settings.DisruptionURL, settings.CatalogURL, settings.Holder},
		Profiles: profiling.Handler(),
		Optional: []string{
			settings.Profiling, settings.Prefix, settings.Namespace, settings.LeaseNamespace, settings.LeaseName, settings.SingleReplica, settings.Kubeconfig, settings.BatchMax, settings.BatchIdle,
			settings.MemoryOverhead, settings.Preferences, settings.MinValues, settings.ReservedENIs,
			settings.FeatureGates, settings.AWSGates, settings.LegacyRepair, settings.Scheduler, settings.IgnoreDRA, settings.MaxNodeShare, settings.Premium, settings.ByPriority, settings.PriceLimit,
			settings.RepairRules, settings.Unhealthy, settings.UnhealthyZone,
		},
	}, run)
}

func run(ctx context.Context, p *startup.Bootstrap) error {
	kubecluster.SetLogger(p.Telemetry.Log)
	kubecluster.ObserveCalls(telemetry.KubernetesObserver{Telemetry: p.Telemetry})
	repairs, err := p.NewRepairMatcher()
	if err != nil {
		return err
	}
	config, err := kubecluster.Config(p.Kubeconfig, build.UserAgent("joist-watcher"))
	if err != nil {
		return err
	}
	client, err := kubecluster.New(config, "joist-watcher")
	if err != nil {
		return err
	}
	if p.Cluster, err = startup.IdentifyCluster(ctx, client, p.Cluster); err != nil {
		return err
	}
	cache, err := client.NewCache(kubecluster.CacheOptions{
		Kinds: watcher.WatchedKinds(p.Scheduling, len(p.DefaultConstraints) > 0), Namespaces: map[cluster.Kind]string{cluster.ConfigMaps: p.Namespace},
		Trim: watcher.Trims(p.PodDeletionCostManagement),
	})
	if err != nil {
		return err
	}
	service := watcher.New(watcher.Config{
		Client: client, Cache: cache, Blobs: p.BlobStore(),
		Planner:    p.Queue(p.PlannerURL, settings.PlannerURL),
		Disruption: p.Queue(p.DisruptionURL, settings.DisruptionURL),
		Catalog:    p.Queue(p.CatalogURL, settings.CatalogURL),
		Cluster:    p.Cluster, Namespace: p.Namespace, KarpenterNamespace: p.LeaseNamespace, KarpenterLease: p.LeaseName, Holder: p.Holder, Alone: p.HasSingleReplica,
		Settings: p.Scheduling, Repair: repairs, DefaultConstraints: p.DefaultConstraints, BatchIdle: p.BatchIdle, BatchMax: p.BatchMax, Now: time.Now,
		Metrics: p.Telemetry.RecordMetric,
		Span:    spanReporter(p), Samples: p.Telemetry.SamplesTrace,
	})
	p.Telemetry.CollectObjects(service.CollectObjects)
	loop, feed := p.NewLoop(host.Loop{Reconcile: service.Step, Interval: watcher.StepInterval, NextDue: service.NextStep, MinPause: service.MinPause}, service.Reconciled, cache)
	if err := p.Serve(ctx, cache); err != nil {
		return err
	}
	renewal := host.Loop{Reconcile: service.Renew, Interval: lease.RetryPeriod}
	return errors.Join(host.RunTogether(ctx, feed, loop, renewal.Run), startup.RunAfterStop(ctx, service.Release))
}

// spanReporter returns the function that reports spans, or nil without a collector, because
// collecting their data costs time.
func spanReporter(p *startup.Bootstrap) func(host.Span) {
	if !p.Tracing.Exports() {
		return nil
	}
	return p.Telemetry.RecordSpan
}
