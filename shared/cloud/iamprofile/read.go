package iamprofile

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// Profile is iam:GetInstanceProfile.
func (p Profiles) Profile(ctx context.Context, name string) (cloud.Profile, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	have, err := p.get(ctx, name)
	if err != nil {
		return cloud.Profile{}, err
	}
	return fromProfile(*have), nil
}

// ListProfiles is iam:ListInstanceProfiles, all pages.
func (p Profiles) ListProfiles(ctx context.Context, path string) ([]cloud.Profile, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var out []cloud.Profile
	pages := iam.NewListInstanceProfilesPaginator(p.client, &iam.ListInstanceProfilesInput{PathPrefix: aws.String(path)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awsfault.ReadCall("listing instance profiles below "+path, "iam:ListInstanceProfiles").Wrap(err)
		}
		for _, found := range page.InstanceProfiles {
			out = append(out, fromProfile(found))
		}
	}
	return out, nil
}

func (p Profiles) get(ctx context.Context, name string) (*types.InstanceProfile, error) {
	out, err := p.client.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String(name)})
	if err != nil {
		return nil, awsfault.ReadCall("reading instance profile "+name, "iam:GetInstanceProfile").Wrap(err)
	}
	return out.InstanceProfile, nil
}

func fromProfile(p types.InstanceProfile) cloud.Profile {
	out := cloud.Profile{
		Name: aws.ToString(p.InstanceProfileName), Path: aws.ToString(p.Path), Created: aws.ToTime(p.CreateDate), Tags: map[string]string{},
	}
	for _, tag := range p.Tags {
		out.Tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	if len(p.Roles) > 0 {
		out.Role = aws.ToString(p.Roles[0].RoleName)
	}
	return out
}
