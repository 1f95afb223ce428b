package ec2

import (
	"context"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

type templateInfo struct {
	ID      string    `xml:"launchTemplateId"`
	Name    string    `xml:"launchTemplateName"`
	Created time.Time `xml:"createTime"`
	Tags    []tag     `xml:"tagSet>item"`
}

type templateAnswer struct {
	Template templateInfo `xml:"launchTemplate"`
}

func (s *Service) createTemplate(ctx context.Context, form query.Form) (any, error) {
	t, err := template(form)
	if err != nil {
		return nil, err
	}
	if isDryRun(form) {
		return nil, dryRunError(s.cloud.TryTemplate(ctx, t))
	}
	if err := s.cloud.CreateTemplate(ctx, t); err != nil {
		return nil, err
	}
	return templateAnswer{templateInfo{ID: templateID(t.Name), Name: t.Name, Tags: tagSet(t.Tags)}}, nil
}

func (s *Service) deleteTemplate(ctx context.Context, form query.Form) (any, error) {
	name := form.Get("LaunchTemplateName")
	if id := form.Get("LaunchTemplateId"); id != "" {
		found, err := s.cloud.Templates(ctx, nil)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(found, func(t cloud.TemplateInfo) bool { return templateID(t.Name) == id })
		if i < 0 {
			return nil, refusal{"InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID " + id + ", does not exist."}
		}
		name = found[i].Name
	}
	if err := s.cloud.DeleteTemplateStrictly(ctx, name); err != nil {
		return nil, err
	}
	return templateAnswer{templateInfo{ID: templateID(name), Name: name}}, nil
}

func (s *Service) describeTemplates(ctx context.Context, form query.Form) (any, error) {
	filter, err := instanceFilter(form)
	if err != nil {
		return nil, err
	}
	found, err := s.cloud.Templates(ctx, filter.Tags)
	if err != nil {
		return nil, err
	}
	if names := form.List("LaunchTemplateName"); len(names) > 0 {
		found = slices.DeleteFunc(found, func(t cloud.TemplateInfo) bool { return !slices.Contains(names, t.Name) })
		if len(found) < len(names) {
			return nil, refusal{"InvalidLaunchTemplateName.NotFoundException", "At least one of the launch templates specified in the request does not exist."}
		}
	}
	var out struct {
		Templates []templateInfo `xml:"launchTemplates>item"`
		Next      string         `xml:"nextToken,omitempty"`
	}
	found, out.Next = paged(form, found)
	for _, t := range found {
		out.Templates = append(out.Templates, templateInfo{ID: templateID(t.Name), Name: t.Name, Created: t.Created, Tags: tagSet(t.Tags)})
	}
	return out, nil
}

// templateID returns the id of a template, which is derived from its name.
func templateID(name string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name))
	return fmt.Sprintf("lt-%017x", sum.Sum64())
}

// template parses every field of a launch template, so that a test can compare it with
// the request.
func template(form query.Form) (cloud.Template, error) {
	d := form.Sub("LaunchTemplateData")
	text, err := base64.StdEncoding.DecodeString(d.Get("UserData"))
	if err != nil {
		return cloud.Template{}, fmt.Errorf("%w: user data that is not base64: %w", query.ErrUnserved, err)
	}
	out := cloud.Template{
		Name: form.Get("LaunchTemplateName"), ImageID: d.Get("ImageId"), UserData: string(text),
		InstanceProfile: d.Get("IamInstanceProfile.Name"), SecurityGroups: d.List("SecurityGroupId"),
		BlockDevices: devices(d), Metadata: metadata(d.Sub("MetadataOptions")),
		Monitoring: d.Get("Monitoring.Enabled") == "true", TagSets: tagSets(d),
	}
	for _, set := range tagSets(form) {
		if set.Resource == "launch-template" {
			out.Tags = set.Tags
		}
	}
	interfaces(d, &out)
	rest(d, &out)
	return out, nil
}

func devices(d query.Form) []cloud.BlockDevice {
	var out []cloud.BlockDevice
	for _, f := range d.Each("BlockDeviceMapping") {
		ebs := f.Sub("Ebs")
		out = append(out, cloud.BlockDevice{
			Device: f.Get("DeviceName"), SizeGiB: int64(ebs.Int("VolumeSize")), Type: ebs.Get("VolumeType"),
			IOPS: int64(ebs.Int("Iops")), ThroughputMiBps: int64(ebs.Int("Throughput")),
			Encrypted: ebs.Bool("Encrypted"), KMSKey: ebs.Get("KmsKeyId"), Snapshot: ebs.Get("SnapshotId"),
			DeleteOnTermination: ebs.Bool("DeleteOnTermination"), InitializationRate: int32(ebs.Int("VolumeInitializationRate")),
		})
	}
	return out
}

func metadata(m query.Form) cloud.Metadata {
	return cloud.Metadata{
		Endpoint: m.Get("HttpEndpoint"), IPv6: m.Get("HttpProtocolIpv6"),
		HopLimit: int64(m.Int("HttpPutResponseHopLimit")), Tokens: m.Get("HttpTokens"), Tags: m.Get("InstanceMetadataTags"),
	}
}

// interfaces parses network interfaces. A single one without a type only carries other
// settings.
func interfaces(d query.Form, out *cloud.Template) {
	for n, f := range d.Each("NetworkInterface") {
		if n == 0 {
			out.SecurityGroups = f.List("SecurityGroupId")
			out.PublicIP, out.PrefixCount = f.Bool("AssociatePublicIpAddress"), f.Int32("Ipv4PrefixCount")
			if out.IPv6 = f.Get("PrimaryIpv6") == "true" && f.Int("Ipv6AddressCount") == 1; out.IPv6 {
				out.PrefixCount = f.Int32("Ipv6PrefixCount")
			}
			out.Connections = connections(f)
		}
		if kind := f.Get("InterfaceType"); kind != "" {
			out.Interfaces = append(out.Interfaces, cloud.NetworkInterface{
				Card: int32(f.Int("NetworkCardIndex")), Device: int32(f.Int("DeviceIndex")), Kind: kind,
			})
		}
	}
}

func connections(f query.Form) *cloud.ConnectionTracking {
	if !f.Has("ConnectionTrackingSpecification") {
		return nil
	}
	c := f.Sub("ConnectionTrackingSpecification")
	return &cloud.ConnectionTracking{
		TCPEstablished: c.Int32("TcpEstablishedTimeout"), UDPStream: c.Int32("UdpStreamTimeout"), UDP: c.Int32("UdpTimeout"),
	}
}

// rest parses fields that few templates have.
func rest(d query.Form, out *cloud.Template) {
	out.Market = d.Get("InstanceMarketOptions.MarketType")
	out.Enclaves = d.Get("EnclaveOptions.Enabled") == "true"
	if d.Has("CpuOptions") {
		out.CPU = &cloud.CPUOptions{NestedVirtualization: d.Get("CpuOptions.NestedVirtualization")}
	}
	if d.Has("Placement") {
		p := d.Sub("Placement")
		out.Placement = &cloud.Placement{
			Group: p.Get("GroupName"), GroupID: p.Get("GroupId"), Partition: int32(p.Int("PartitionNumber")), Tenancy: p.Get("Tenancy"),
		}
	}
	if d.Has("CapacityReservationSpecification") {
		r := d.Sub("CapacityReservationSpecification")
		out.Reservation = &cloud.ReservationTarget{
			ID:         r.Get("CapacityReservationTarget.CapacityReservationId"),
			Preference: r.Get("CapacityReservationPreference"),
		}
	}
	if d.Has("PrivateDnsNameOptions") {
		out.PrivateDNS = &cloud.PrivateDNSOptions{HostnameType: d.Get("PrivateDnsNameOptions.HostnameType")}
	}
}
