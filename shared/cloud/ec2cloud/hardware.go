package ec2cloud

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

func toMetadata(m cloud.Metadata) *types.LaunchTemplateInstanceMetadataOptionsRequest {
	out := &types.LaunchTemplateInstanceMetadataOptionsRequest{
		HttpEndpoint:         types.LaunchTemplateInstanceMetadataEndpointState(m.Endpoint),
		HttpProtocolIpv6:     types.LaunchTemplateInstanceMetadataProtocolIpv6(m.IPv6),
		HttpTokens:           types.LaunchTemplateHttpTokensState(m.Tokens),
		InstanceMetadataTags: types.LaunchTemplateInstanceMetadataTagsState(m.Tags),
	}
	if m.HopLimit != 0 {
		out.HttpPutResponseHopLimit = aws.Int32(int32(m.HopLimit))
	}
	return out
}

func toDevices(devices []cloud.BlockDevice) []types.LaunchTemplateBlockDeviceMappingRequest {
	var out []types.LaunchTemplateBlockDeviceMappingRequest
	for _, d := range devices {
		out = append(out, types.LaunchTemplateBlockDeviceMappingRequest{
			DeviceName: optional(d.Device),
			Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{
				DeleteOnTermination: d.DeleteOnTermination, Encrypted: d.Encrypted,
				Iops: number(d.IOPS), KmsKeyId: optional(d.KMSKey), SnapshotId: optional(d.Snapshot),
				Throughput: number(d.ThroughputMiBps), VolumeInitializationRate: number(int64(d.InitializationRate)),
				VolumeSize: number(d.SizeGiB), VolumeType: types.VolumeType(d.Type),
			},
		})
	}
	return out
}

// number returns nil for zero, for EC2's default.
func number(n int64) *int32 {
	if n == 0 {
		return nil
	}
	return aws.Int32(int32(n))
}

// toInterfaces returns explicit interfaces only if a setting requires them.
func toInterfaces(t cloud.Template) []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
	wanted := t.Interfaces
	if len(wanted) == 0 {
		if t.PublicIP == nil && t.PrefixCount == nil && t.Connections == nil && !t.IPv6 {
			return nil
		}
		wanted = []cloud.NetworkInterface{{}}
	}
	var out []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest
	for _, i := range wanted {
		out = append(out, toInterface(t, i))
	}
	return out
}

func toInterface(t cloud.Template, i cloud.NetworkInterface) types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
	out := types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
		NetworkCardIndex: aws.Int32(i.Card), DeviceIndex: aws.Int32(i.Device), InterfaceType: optional(i.Kind),
		Groups: t.SecurityGroups, DeleteOnTermination: aws.Bool(true),
	}
	if i.Kind == cloud.InterfaceEFAOnly {
		return out // EC2 rejects IP settings there.
	}
	out.ConnectionTrackingSpecification = toConnections(t.Connections)
	if t.IPv6 {
		out.PrimaryIpv6, out.Ipv6AddressCount = aws.Bool(true), aws.Int32(1)
	}
	if t.IPv6 {
		out.Ipv6PrefixCount = t.PrefixCount
	} else {
		out.Ipv4PrefixCount = t.PrefixCount
	}
	if i.Card == 0 && i.Device == 0 {
		out.AssociatePublicIpAddress = t.PublicIP // EC2 accepts it for the first interface only.
	}
	return out
}

func toConnections(c *cloud.ConnectionTracking) *types.ConnectionTrackingSpecificationRequest {
	if c == nil {
		return nil
	}
	return &types.ConnectionTrackingSpecificationRequest{
		TcpEstablishedTimeout: c.TCPEstablished, UdpStreamTimeout: c.UDPStream, UdpTimeout: c.UDP,
	}
}
