// Command joist-catalog runs the catalog service, as a Lambda function or as a process
// that polls its queue.
package main

import (
	"time"

	"github.com/joist-autoscaler/joist/services/catalog"
	"github.com/joist-autoscaler/joist/services/catalog/internal/cache"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/ec2cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/ekscluster"
	"github.com/joist-autoscaler/joist/shared/cloud/pricing"
	"github.com/joist-autoscaler/joist/shared/cloud/ssmparameters"
	"github.com/joist-autoscaler/joist/shared/cloud/zonalshift"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/lambda"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/host/startup"
)

func main() {
	startup.RunFunction(startup.Service{
		Name:     "catalog",
		Purpose:  "joist-catalog reads AWS: instances, the resources that node classes select, instance types and prices.",
		Required: []string{settings.Bucket, settings.Bus, settings.DeadLetterURL},
		Optional: []string{settings.QueueURL, settings.Prefix, settings.IsolatedVPC, settings.ZonalShift, settings.GroupRefresh,
			settings.Endpoint, settings.CABundle, settings.ControlPlane, settings.Kubernetes, settings.ServiceCIDR},
	}, buildHandler, lambda.Serve)
}

func buildHandler(p *startup.Bootstrap) (host.Handler, host.Options) {
	ec2 := ec2cloud.New(p.AWS)
	service := catalog.Service{
		Instances: ec2, Network: cache.CacheSecurityGroups(ec2, p.SecurityGroupRefreshInterval, time.Now), Placements: ec2,
		Images:   cache.NewImages(imageClient{ec2, ssmparameters.New(p.AWS)}, time.Now),
		Clusters: cache.NewClusters(ekscluster.New(p.AWS), time.Now),
		Market:   ec2, Prices: pricing.New(p.AWS), Isolated: p.IsolatedVPC, OfferingCache: cache.NewOfferings(time.Now),
		ClusterOverrides: catalog.ClusterOverrides{
			Endpoint: p.Endpoint, CABundle: p.CABundle, Version: p.KubernetesVersion, ServiceCIDR: p.ServiceCIDR, NoEKS: p.IsSelfManaged,
		},
		Blobs: p.BlobStore(), Bus: p.EventBus(), Cluster: p.Cluster, Region: p.Region, Now: time.Now,
	}
	if p.ZonalShift {
		service.Shifts = zonalshift.New(p.AWS)
	}
	return p.NewEventHandler(catalog.Types, service.Handle), host.Options{Deadline: 2 * time.Minute}
}

// imageClient finds images in EC2 and reads their ids from SSM parameters.
type imageClient struct {
	ec2cloud.Cloud
	ssmparameters.Parameters
}

var _ cloud.Images = imageClient{}
