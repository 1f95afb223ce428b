package peers

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

const tagKey, tagValue = "karpenter.sh/discovery", "web"

// furnisher creates resources in an account directly with the SDK, because the adapters
// under test must not create what they read.
type furnisher struct {
	t      *testing.T
	server aws.Config
}

// done fails the test on an error of a call.
func done[T any](t *testing.T, out T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// discovered returns the tag by which the suite discovers resources of this type.
func discovered(kind types.ResourceType) []types.TagSpecification {
	return []types.TagSpecification{{
		ResourceType: kind, Tags: []types.Tag{{Key: aws.String(tagKey), Value: aws.String(tagValue)}},
	}}
}

// network is a VPC with a subnet in each of two zones.
type network struct {
	subnets []cloud.Subnet
	group   cloud.SecurityGroup
}

func (f furnisher) network() network {
	client, ctx := ec2.NewFromConfig(f.server), f.t.Context()
	vpc, err := client.CreateVpc(ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.7.0.0/16")})
	id := done(f.t, vpc, err).Vpc.VpcId
	var out network
	for i, zone := range []string{"a", "b"} {
		made, err := client.CreateSubnet(ctx, &ec2.CreateSubnetInput{
			VpcId: id, CidrBlock: aws.String(fmt.Sprintf("10.7.%d.0/20", 16*i)), AvailabilityZone: aws.String(f.server.Region + zone),
			TagSpecifications: discovered(types.ResourceTypeSubnet),
		})
		s := done(f.t, made, err).Subnet
		out.subnets = append(out.subnets, cloud.Subnet{
			ID: *s.SubnetId, Zone: *s.AvailabilityZone, ZoneID: *s.AvailabilityZoneId, VPC: *s.VpcId,
			FreeIPs: int(*s.AvailableIpAddressCount), Tags: map[string]string{tagKey: tagValue},
		})
	}
	group, err := client.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
		VpcId: id, GroupName: aws.String("nodes"), Description: aws.String("nodes"),
		TagSpecifications: discovered(types.ResourceTypeSecurityGroup),
	})
	out.group = cloud.SecurityGroup{
		ID: *done(f.t, group, err).GroupId, Name: "nodes", Tags: map[string]string{tagKey: tagValue},
	}
	return out
}

// image copies an existing image, because moto registers images without an architecture,
// and loses the tags of copies.
func (f furnisher) image() cloud.Image {
	client, ctx := ec2.NewFromConfig(f.server), f.t.Context()
	public, err := client.DescribeImages(ctx, &ec2.DescribeImagesInput{Filters: []types.Filter{
		{Name: aws.String("architecture"), Values: []string{"x86_64"}},
	}})
	made, err := client.CopyImage(ctx, &ec2.CopyImageInput{
		Name: aws.String("joist-test-1"), SourceRegion: aws.String(f.server.Region), SourceImageId: done(f.t, public, err).Images[0].ImageId,
	})
	id := *done(f.t, made, err).ImageId
	tagged, err := client.CreateTags(ctx, &ec2.CreateTagsInput{
		Resources: []string{id}, Tags: []types.Tag{{Key: aws.String("joist/image"), Value: aws.String("yes")}},
	})
	done(f.t, tagged, err)
	found, err := client.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{id}})
	image := done(f.t, found, err).Images[0]
	created, err := time.Parse(time.RFC3339, *image.CreationDate)
	return cloud.Image{
		ID: id, Name: "joist-test-1", Owner: *image.OwnerId, Arch: "amd64", Created: done(f.t, created, err),
		Tags: map[string]string{"joist/image": "yes"},
	}
}

func (f furnisher) parameter(name, value string) {
	out, err := ssm.NewFromConfig(f.server).PutParameter(f.t.Context(), &ssm.PutParameterInput{
		Name: aws.String(name), Value: aws.String(value), Type: ssmtypes.ParameterTypeString,
	})
	done(f.t, out, err)
}

func (f furnisher) role(name string) {
	out, err := iam.NewFromConfig(f.server).CreateRole(f.t.Context(), &iam.CreateRoleInput{
		RoleName: aws.String(name),
		AssumeRolePolicyDocument: aws.String(`{"Version": "2012-10-17", "Statement": [{
			"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}]}`),
	})
	done(f.t, out, err)
}

func (f furnisher) cluster(name string, subnets []cloud.Subnet) cloud.ClusterInfo {
	in := &eks.CreateClusterInput{
		Name: aws.String(name), Version: aws.String("1.33"), RoleArn: aws.String("arn:aws:iam::123456789012:role/cluster"),
		KubernetesNetworkConfig: &ekstypes.KubernetesNetworkConfigRequest{ServiceIpv4Cidr: aws.String("172.20.0.0/16")},
		ResourcesVpcConfig:      &ekstypes.VpcConfigRequest{},
	}
	for _, subnet := range subnets {
		in.ResourcesVpcConfig.SubnetIds = append(in.ResourcesVpcConfig.SubnetIds, subnet.ID)
	}
	out, err := eks.NewFromConfig(f.server).CreateCluster(f.t.Context(), in)
	made := done(f.t, out, err).Cluster
	return cloud.ClusterInfo{
		Name: name, ARN: *made.Arn, Endpoint: *made.Endpoint, CABundle: *made.CertificateAuthority.Data, ServiceCIDR: "172.20.0.0/16", Version: "1.33",
	}
}
