// Package ekscluster is the adapter to EKS: the properties of a cluster that nodes need to join.
package ekscluster

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/aws/awshttp"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// timeout is the timeout of one call.
const timeout = time.Minute

// Clusters reads clusters with one client.
type Clusters struct {
	client *eks.Client
}

var _ cloud.Clusters = Clusters{}

// New returns Clusters with an AWS configuration.
func New(config aws.Config) Clusters {
	return Clusters{client: eks.NewFromConfig(awshttp.WithSafeBodies(config))}
}

// DescribeCluster is eks:DescribeCluster.
func (c Clusters) DescribeCluster(ctx context.Context, name string) (cloud.ClusterInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := c.client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(name)})
	if err != nil {
		return cloud.ClusterInfo{}, awsfault.ReadCall("describing cluster "+name, "eks:DescribeCluster").Wrap(err)
	}
	return fromCluster(out.Cluster), nil
}

func fromCluster(c *types.Cluster) cloud.ClusterInfo {
	out := cloud.ClusterInfo{
		Name: aws.ToString(c.Name), ARN: aws.ToString(c.Arn), Endpoint: aws.ToString(c.Endpoint), Version: aws.ToString(c.Version),
	}
	if c.CertificateAuthority != nil {
		out.CABundle = aws.ToString(c.CertificateAuthority.Data)
	}
	if n := c.KubernetesNetworkConfig; n != nil {
		out.ServiceCIDR = aws.ToString(n.ServiceIpv4Cidr)
		if n.IpFamily == types.IpFamilyIpv6 {
			out.ServiceCIDR = aws.ToString(n.ServiceIpv6Cidr)
		}
	}
	return out
}
