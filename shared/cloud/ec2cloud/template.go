package ec2cloud

import (
	"context"
	"encoding/base64"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// templatePage is the maximum number of templates in one response.
const templatePage = 200

// EnsureTemplate is ec2:CreateLaunchTemplate; an existing name is not an error.
func (c Cloud) EnsureTemplate(ctx context.Context, t cloud.Template) error {
	what := awsfault.WriteCall("creating launch template "+t.Name, "ec2:CreateLaunchTemplate")
	_, err := call(ctx, what, func(ctx context.Context) (*ec2.CreateLaunchTemplateOutput, error) {
		return c.client.CreateLaunchTemplate(ctx, toTemplate(t))
	})
	if fault.Is(err, fault.Conflict) {
		return nil
	}
	return err
}

// Templates is ec2:DescribeLaunchTemplates.
func (c Cloud) Templates(ctx context.Context, tags map[string]string) ([]cloud.TemplateInfo, error) {
	pages := ec2.NewDescribeLaunchTemplatesPaginator(c.client,
		&ec2.DescribeLaunchTemplatesInput{Filters: tagFilters(tags), MaxResults: aws.Int32(templatePage)})
	var out []cloud.TemplateInfo
	what := awsfault.ReadCall("listing launch templates", "ec2:DescribeLaunchTemplates")
	err := all(ctx, what, pages, func(found *ec2.DescribeLaunchTemplatesOutput) {
		for _, t := range found.LaunchTemplates {
			out = append(out, cloud.TemplateInfo{
				Name: aws.ToString(t.LaunchTemplateName), Created: aws.ToTime(t.CreateTime), Tags: fromTags(t.Tags),
			})
		}
	})
	return out, err
}

// DeleteTemplate is ec2:DeleteLaunchTemplate; a missing template is not an error.
func (c Cloud) DeleteTemplate(ctx context.Context, name string) error {
	what := awsfault.WriteCall("deleting launch template "+name, "ec2:DeleteLaunchTemplate")
	_, err := call(ctx, what, func(ctx context.Context) (*ec2.DeleteLaunchTemplateOutput, error) {
		return c.client.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(name)})
	})
	if fault.Is(err, fault.Missing) {
		return nil
	}
	return err
}

func toTemplate(t cloud.Template) *ec2.CreateLaunchTemplateInput {
	in := &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(t.Name), LaunchTemplateData: toData(t)}
	in.TagSpecifications = toSpecifications([]cloud.TagSet{{Resource: "launch-template", Tags: t.Tags}})
	return in
}

func toData(t cloud.Template) *types.RequestLaunchTemplateData {
	out := &types.RequestLaunchTemplateData{
		ImageId:             optional(t.ImageID),
		UserData:            optional(base64.StdEncoding.EncodeToString([]byte(t.UserData))),
		Monitoring:          &types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(t.Monitoring)},
		MetadataOptions:     toMetadata(t.Metadata),
		BlockDeviceMappings: toDevices(t.BlockDevices),
		NetworkInterfaces:   toInterfaces(t),
		EnclaveOptions:      &types.LaunchTemplateEnclaveOptionsRequest{Enabled: aws.Bool(t.Enclaves)},
	}
	if t.InstanceProfile != "" {
		out.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String(t.InstanceProfile)}
	}
	if len(out.NetworkInterfaces) == 0 {
		// EC2 rejects groups outside of interfaces if there are interfaces, which then have the groups.
		out.SecurityGroupIds = t.SecurityGroups
	}
	for _, set := range toSpecifications(t.TagSets) {
		out.TagSpecifications = append(out.TagSpecifications,
			types.LaunchTemplateTagSpecificationRequest{ResourceType: set.ResourceType, Tags: set.Tags})
	}
	toRest(t, out)
	return out
}

// toRest sets the options that few templates have.
func toRest(t cloud.Template, out *types.RequestLaunchTemplateData) {
	if t.CPU != nil && t.CPU.NestedVirtualization != "" {
		out.CpuOptions = &types.LaunchTemplateCpuOptionsRequest{
			NestedVirtualization: types.NestedVirtualizationSpecification(t.CPU.NestedVirtualization),
		}
	}
	if p := t.Placement; p != nil {
		out.Placement = &types.LaunchTemplatePlacementRequest{GroupName: optional(p.Group), GroupId: optional(p.GroupID)}
		if p.Partition != 0 {
			out.Placement.PartitionNumber = aws.Int32(p.Partition)
		}
		out.Placement.Tenancy = types.Tenancy(p.Tenancy)
	}
	if r := t.Reservation; r != nil {
		out.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: types.CapacityReservationPreference(r.Preference),
		}
		if r.ID != "" {
			out.CapacityReservationSpecification.CapacityReservationTarget =
				&types.CapacityReservationTarget{CapacityReservationId: aws.String(r.ID)}
		}
	}
	if t.Market != "" {
		out.InstanceMarketOptions = &types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: types.MarketType(t.Market)}
	}
	if d := t.PrivateDNS; d != nil && d.HostnameType != "" {
		out.PrivateDnsNameOptions = &types.LaunchTemplatePrivateDnsNameOptionsRequest{
			HostnameType: types.HostnameType(d.HostnameType),
		}
	}
}
