package ec2cloud

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// Tag is ec2:CreateTags.
func (c Cloud) Tag(ctx context.Context, ids []string, tags map[string]string) error {
	if len(tags) == 0 {
		return nil
	}
	what := awsfault.WriteCall("tagging instances", "ec2:CreateTags")
	for some := range slices.Chunk(ids, batch) {
		_, err := call(ctx, what, func(ctx context.Context) (*ec2.CreateTagsOutput, error) {
			return c.client.CreateTags(ctx, &ec2.CreateTagsInput{Resources: some, Tags: toTags(tags)})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// toTags returns sorted tags, because the body of a CreateFleet must be the same every time.
func toTags(tags map[string]string) []types.Tag {
	out := make([]types.Tag, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return out
}

func fromTags(tags []types.Tag) map[string]string {
	if len(tags) == 0 {
		return nil
	}
	out := make(map[string]string, len(tags))
	for _, tag := range tags {
		out[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return out
}

func toSpecifications(sets []cloud.TagSet) []types.TagSpecification {
	var out []types.TagSpecification
	for _, set := range sets {
		if len(set.Tags) > 0 {
			out = append(out, types.TagSpecification{
				ResourceType: types.ResourceType(set.Resource), Tags: toTags(set.Tags),
			})
		}
	}
	return out
}

// tagFilters returns a filter for each tag, sorted; an empty value matches any value.
func tagFilters(tags map[string]string) []types.Filter {
	var out []types.Filter
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if tags[key] == "" {
			out = append(out, filter("tag-key", key))
		} else {
			out = append(out, filter("tag:"+key, tags[key]))
		}
	}
	return out
}
