package ec2

import (
	"context"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

type subnet struct {
	ID     string `xml:"subnetId"`
	VPC    string `xml:"vpcId"`
	Zone   string `xml:"availabilityZone"`
	ZoneID string `xml:"availabilityZoneId"`
	Free   int    `xml:"availableIpAddressCount"`
	Tags   []tag  `xml:"tagSet>item"`
}

func (s *Service) describeSubnets(ctx context.Context, form query.Form) (any, error) {
	wanted, err := selectors(form, "subnet-id", "tag:Name")
	if err != nil {
		return nil, err
	}
	found, err := s.cloud.DescribeSubnets(ctx, wanted)
	if err != nil {
		return nil, err
	}
	var out struct {
		Subnets []subnet `xml:"subnetSet>item"`
		Next    string   `xml:"nextToken,omitempty"`
	}
	found, out.Next = paged(form, found)
	for _, x := range found {
		out.Subnets = append(out.Subnets, subnet{x.ID, x.VPC, x.Zone, x.ZoneID, x.FreeIPs, tagSet(x.Tags)})
	}
	return out, nil
}

type group struct {
	ID   string `xml:"groupId"`
	Name string `xml:"groupName"`
	Tags []tag  `xml:"tagSet>item"`
}

func (s *Service) describeGroups(ctx context.Context, form query.Form) (any, error) {
	wanted, err := selectors(form, "group-id", "group-name")
	if err != nil {
		return nil, err
	}
	found, err := s.cloud.DescribeSecurityGroups(ctx, wanted)
	if err != nil {
		return nil, err
	}
	var out struct {
		Groups []group `xml:"securityGroupInfo>item"`
		Next   string  `xml:"nextToken,omitempty"`
	}
	found, out.Next = paged(form, found)
	for _, g := range found {
		out.Groups = append(out.Groups, group{g.ID, g.Name, tagSet(g.Tags)})
	}
	return out, nil
}

type image struct {
	ID         string `xml:"imageId"`
	Name       string `xml:"name"`
	Owner      string `xml:"imageOwnerId"`
	Alias      string `xml:"imageOwnerAlias,omitempty"`
	Arch       string `xml:"architecture"`
	Created    string `xml:"creationDate"`
	Deprecated string `xml:"deprecationTime,omitempty"`
	Tags       []tag  `xml:"tagSet>item"`
}

// machines are EC2's names of architectures.
var machines = map[string]string{"amd64": "x86_64", "arm64": "arm64"}

func (s *Service) describeImages(ctx context.Context, form query.Form) (any, error) {
	wanted, err := selectors(form, "image-id", "name")
	if err != nil {
		return nil, err
	}
	if owners := form.List("Owner"); len(owners) == 1 {
		for n := range wanted {
			wanted[n].Owner = owners[0]
		}
	}
	found, err := s.cloud.DescribeImages(ctx, wanted)
	if err != nil {
		return nil, err
	}
	if include := form.Bool("IncludeDeprecated"); include == nil || !*include {
		found = slices.DeleteFunc(found, func(i cloud.Image) bool { return i.Deprecated })
	}
	var out struct {
		Images []image `xml:"imagesSet>item"`
		Next   string  `xml:"nextToken,omitempty"`
	}
	found, out.Next = paged(form, found)
	for _, i := range found {
		out.Images = append(out.Images, s.image(i))
	}
	return out, nil
}

func (s *Service) image(i cloud.Image) image {
	out := image{
		ID: i.ID, Name: i.Name, Arch: machines[i.Arch], Created: i.Created.UTC().Format(time.RFC3339Nano), Tags: tagSet(i.Tags),
	}
	out.Alias, out.Owner = owner(i.Owner, s.cloud.Account())
	if i.Deprecated {
		out.Deprecated = i.Created.UTC().Format(time.RFC3339Nano)
	}
	return out
}
