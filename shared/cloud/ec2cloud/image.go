package ec2cloud

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// DescribeImages is ec2:DescribeImages, once for each selector. Without an owner or an id it finds only images of the
// account and of Amazon, because any account may publish an image under any name.
func (c Cloud) DescribeImages(ctx context.Context, selectors []cloud.Selector) ([]cloud.Image, error) {
	var out []cloud.Image
	first, now := once(), time.Now()
	what := awsfault.ReadCall("describing images", "ec2:DescribeImages")
	for _, q := range queries(selectors, "image-id", "name", filter("state", "available")) {
		pages := ec2.NewDescribeImagesPaginator(c.client, &ec2.DescribeImagesInput{
			Filters: q.filters, Owners: owners(q), IncludeDeprecated: aws.Bool(true), MaxResults: aws.Int32(page),
		})
		err := all(ctx, what, pages, func(found *ec2.DescribeImagesOutput) {
			for _, i := range found.Images {
				if first(aws.ToString(i.ImageId)) {
					out = append(out, fromImage(i, now))
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// owners returns the accounts whose images a query finds; none means all that the account may use. A
// name alone could be that of a stranger's public image. Tags are the account's own, also those of images
// that others share with it.
func owners(q query) []string {
	switch {
	case q.owner != "":
		return []string{q.owner}
	case q.byName:
		return []string{"self", "amazon"}
	}
	return nil
}

// architectures maps EC2's names to Kubernetes'; others stay unchanged.
var architectures = map[types.ArchitectureValues]string{
	types.ArchitectureValuesX8664: "amd64",
	types.ArchitectureValuesArm64: "arm64",
}

func fromImage(i types.Image, now time.Time) cloud.Image {
	out := cloud.Image{
		ID: aws.ToString(i.ImageId), Name: aws.ToString(i.Name), Owner: aws.ToString(i.ImageOwnerAlias),
		Arch: architectures[i.Architecture], Created: moment(i.CreationDate), Tags: fromTags(i.Tags),
	}
	if out.Owner == "" {
		out.Owner = aws.ToString(i.OwnerId)
	}
	if out.Arch == "" {
		out.Arch = string(i.Architecture)
	}
	end := moment(i.DeprecationTime)
	out.Deprecated = !end.IsZero() && end.Before(now)
	return out
}

// moment parses a time that EC2 returns as text; zero if it is invalid.
func moment(text *string) time.Time {
	t, err := time.Parse(time.RFC3339, aws.ToString(text))
	if err != nil {
		return time.Time{}
	}
	return t
}
