package ec2cloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// allowed is EC2's error code for a dry run that would have succeeded.
const allowed = "DryRunOperation"

var _ cloud.DryRunner = Cloud{}

// TryTemplate is ec2:CreateLaunchTemplate with DryRun.
func (c Cloud) TryTemplate(ctx context.Context, t cloud.Template) error {
	in := toTemplate(t)
	in.DryRun = aws.Bool(true)
	return dryRun(ctx, "ec2:CreateLaunchTemplate", func(ctx context.Context) (*ec2.CreateLaunchTemplateOutput, error) {
		return c.client.CreateLaunchTemplate(ctx, in, single)
	})
}

// TryFleet is ec2:CreateFleet with DryRun. It has no token, so that it cannot affect the launch.
func (c Cloud) TryFleet(ctx context.Context, request cloud.FleetRequest) error {
	request.Token = ""
	in := toFleet(request)
	in.DryRun = aws.Bool(true)
	return dryRun(ctx, "ec2:CreateFleet", func(ctx context.Context) (*ec2.CreateFleetOutput, error) {
		return c.client.CreateFleet(ctx, in, single)
	})
}

// TryRun is ec2:RunInstances with DryRun.
func (c Cloud) TryRun(ctx context.Context, request cloud.RunRequest) error {
	in := &ec2.RunInstancesInput{
		DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		LaunchTemplate: &types.LaunchTemplateSpecification{
			LaunchTemplateName: aws.String(request.Template), Version: aws.String(version),
		},
		InstanceType:        types.InstanceType(request.InstanceType),
		NetworkInterfaces:   toRunInterfaces(request),
		BlockDeviceMappings: toRunDevices(request.BlockDevices),
		MetadataOptions:     toRunMetadata(request.Metadata),
		TagSpecifications:   toSpecifications(request.TagSets),
	}
	return dryRun(ctx, "ec2:RunInstances", func(ctx context.Context) (*ec2.RunInstancesOutput, error) {
		return c.client.RunInstances(ctx, in, single)
	})
}

// toRunInterfaces sets the subnet on interfaces: EC2 rejects it outside of them if the template has interfaces.
func toRunInterfaces(request cloud.RunRequest) []types.InstanceNetworkInterfaceSpecification {
	if len(request.Interfaces) == 0 {
		return []types.InstanceNetworkInterfaceSpecification{{
			DeviceIndex: aws.Int32(0), SubnetId: optional(request.SubnetID), Groups: request.SecurityGroups,
		}}
	}
	var out []types.InstanceNetworkInterfaceSpecification
	for _, i := range request.Interfaces {
		out = append(out, types.InstanceNetworkInterfaceSpecification{
			NetworkCardIndex: aws.Int32(i.Card), DeviceIndex: aws.Int32(i.Device),
			InterfaceType: optional(i.Kind), SubnetId: optional(request.SubnetID),
			Groups: request.SecurityGroups,
		})
	}
	return out
}

func toRunDevices(devices []cloud.BlockDevice) []types.BlockDeviceMapping {
	var out []types.BlockDeviceMapping
	for _, d := range toDevices(devices) {
		out = append(out, types.BlockDeviceMapping{DeviceName: d.DeviceName, Ebs: &types.EbsBlockDevice{
			DeleteOnTermination: d.Ebs.DeleteOnTermination, Encrypted: d.Ebs.Encrypted,
			Iops: d.Ebs.Iops, KmsKeyId: d.Ebs.KmsKeyId, SnapshotId: d.Ebs.SnapshotId,
			Throughput: d.Ebs.Throughput, VolumeInitializationRate: d.Ebs.VolumeInitializationRate,
			VolumeSize: d.Ebs.VolumeSize, VolumeType: d.Ebs.VolumeType,
		}})
	}
	return out
}

func toRunMetadata(m cloud.Metadata) *types.InstanceMetadataOptionsRequest {
	return &types.InstanceMetadataOptionsRequest{
		HttpEndpoint:            types.InstanceMetadataEndpointState(m.Endpoint),
		HttpProtocolIpv6:        types.InstanceMetadataProtocolState(m.IPv6),
		HttpPutResponseHopLimit: number(m.HopLimit),
		HttpTokens:              types.HttpTokensState(m.Tokens),
		InstanceMetadataTags:    types.InstanceMetadataTagsState(m.Tags),
	}
}

// dryRun makes a call that changes nothing, so its failures are never Unknown.
func dryRun[T any](ctx context.Context, action string, do func(context.Context) (T, error)) error {
	_, err := call(ctx, awsfault.ReadCall("making a dry run of "+action, action), do)
	if cloud.Code(err) == allowed {
		return nil
	}
	return err
}

// single disables the SDK's retries.
func single(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }
