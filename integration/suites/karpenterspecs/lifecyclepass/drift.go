package lifecyclepass

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	catalogservice "github.com/joist-autoscaler/joist/services/catalog"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// Subnets of the node classes, and of instances that the cloud provider reports as drifted.
const (
	classSubnet   = "subnet-of-class"
	driftedSubnet = "subnet-of-no-class"
)

// sendDriftInventory sends an inventory of the NodeClaims' instances, as the catalog service makes it from EC2's list and
// its catalogue. An instance that the cloud provider reports as drifted is in a subnet that its node class does not select.
func (s *system) sendDriftInventory(ctx context.Context) error {
	bus := memqueue.New(memqueue.Options{Now: now}).Queue("lifecycle", memqueue.QueueOptions{})
	service := catalogservice.Service{
		Instances: claimInstances{s}, Blobs: s.blobs, Bus: bus, Cluster: clusterIdentity, Region: "test-region", StaticCatalogue: catalogueOf, Now: now,
	}
	tick, err := s.maker.New(now(), event.Tick{Want: event.WantInventory}, nil)
	if err != nil {
		return err
	}
	if err := service.Handle(ctx, tick); err != nil {
		return err
	}
	messages, err := bus.Receive(ctx, maxReceived, 0, time.Hour)
	if err != nil {
		return err
	}
	var failures []error
	for _, m := range messages {
		e, err := event.Decode(m.Body)
		if err == nil {
			err = s.handleMessage(ctx, e)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// claimInstances are the instances of the NodeClaims in the cache.
type claimInstances struct{ *system }

func (c claimInstances) DescribeInstances(ctx context.Context, _ cloud.InstanceFilter) ([]cloud.Instance, error) {
	var out []cloud.Instance
	for _, claim := range cluster.ListCached[*karpenter.NodeClaim](c.cache, cluster.NodeClaims) {
		id, err := claim.Instance()
		if err != nil {
			continue
		}
		subnet := classSubnet
		switch reason, err := current.cloud.IsDrifted(ctx, &karpv1.NodeClaim{ObjectMeta: claim.ObjectMeta}); {
		case err != nil:
			return nil, err
		case reason != "":
			subnet = driftedSubnet
		}
		out = append(out, cloud.Instance{
			ID: id.InstanceID, State: cloud.Running, SubnetID: subnet, Launched: claim.CreationTimestamp.Time,
			Type: claim.Labels[corev1.LabelInstanceTypeStable], Zone: claim.Labels[corev1.LabelTopologyZone], CapacityType: claim.Labels[karpenter.CapacityTypeLabelKey],
		})
	}
	return out, nil
}

// catalogueOf returns the cloud provider's instance types as a catalogue.
func catalogueOf(ctx context.Context, region string) (catalog.Catalogue, error) {
	types, err := current.cloud.GetInstanceTypes(ctx, &karpv1.NodePool{})
	out := catalog.Catalogue{Region: region}
	for _, t := range types {
		out.Types = append(out.Types, convertType(t))
	}
	return out, err
}

// convertType converts an instance type as far as lifecycle reads it.
func convertType(t *cloudprovider.InstanceType) catalog.InstanceType {
	out := catalog.InstanceType{Name: t.Name, OS: []string{catalog.Linux}, Arch: karpv1.ArchitectureAmd64}
	for _, o := range t.Offerings {
		out.Offerings = append(out.Offerings, catalog.Offering{
			Zone: o.Requirements.Get(corev1.LabelTopologyZone).Any(), CapacityType: o.CapacityType(), PricePerHour: o.Price, Available: o.Available,
		})
		if usage := o.CapacityType(); usage != catalog.Reserved && !slices.Contains(out.SupportedUsage, usage) {
			out.SupportedUsage = append(out.SupportedUsage, usage)
		}
	}
	return out
}
