// Package iamprofile is the adapter to IAM's instance profiles.
//
// Every step is idempotent, so an interrupted operation can be repeated from the start; a profile may have no role in
// between.
package iamprofile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/aws/awshttp"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// timeout is the timeout of all calls for one profile.
const timeout = time.Minute

// Profiles writes instance profiles with one client.
type Profiles struct {
	client *iam.Client
}

var _ cloud.Profiles = Profiles{}

// New returns Profiles with an AWS configuration.
func New(config aws.Config) Profiles {
	return Profiles{client: iam.NewFromConfig(awshttp.WithSafeBodies(config))}
}

// EnsureProfile creates the profile if it does not exist, and sets its tags and role.
func (p Profiles) EnsureProfile(ctx context.Context, want cloud.Profile) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	want.Role = cloud.RoleName(want.Role)
	have, err := p.get(ctx, want.Name)
	if fault.Is(err, fault.Missing) {
		have, err = &types.InstanceProfile{Tags: toTags(want.Tags)}, p.create(ctx, want)
	}
	if err != nil {
		return err
	}
	if err := p.tag(ctx, want, have); err != nil {
		return err
	}
	return p.setRole(ctx, want, have)
}

// TagProfile is iam:TagInstanceProfile.
func (p Profiles) TagProfile(ctx context.Context, name string, tags map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := p.client.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{InstanceProfileName: aws.String(name), Tags: toTags(tags)})
	return awsfault.WriteCall("tagging instance profile "+name, "iam:TagInstanceProfile").Wrap(err)
}

// DeleteProfile removes the roles, as IAM requires, and deletes the profile.
func (p Profiles) DeleteProfile(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	have, err := p.get(ctx, name)
	if err == nil {
		err = p.detach(ctx, name, have.Roles, "")
	}
	if err == nil {
		_, err = p.client.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: aws.String(name)})
		err = awsfault.WriteCall("deleting instance profile "+name, "iam:DeleteInstanceProfile").Wrap(err)
	}
	if fault.Is(err, fault.Missing) {
		return nil
	}
	return err
}

// create returns Retry if another caller has just created the profile, because its content must be read first.
func (p Profiles) create(ctx context.Context, want cloud.Profile) error {
	in := &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String(want.Name), Tags: toTags(want.Tags)}
	if want.Path != "" {
		in.Path = aws.String(want.Path)
	}
	_, err := p.client.CreateInstanceProfile(ctx, in)
	err = awsfault.WriteCall("creating instance profile "+want.Name, "iam:CreateInstanceProfile").Wrap(err)
	if fault.Is(err, fault.Conflict) {
		return fault.E("creating instance profile "+want.Name, fault.Retry, err)
	}
	return err
}

// tag writes only if a tag differs, because the permission is often missing.
func (p Profiles) tag(ctx context.Context, want cloud.Profile, have *types.InstanceProfile) error {
	tags := map[string]string{}
	for _, tag := range have.Tags {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	complete := true
	for key, value := range want.Tags {
		if had, ok := tags[key]; !ok || had != value {
			complete = false
		}
	}
	if complete {
		return nil
	}
	return p.TagProfile(ctx, want.Name, want.Tags)
}

// setRole removes other roles first: a profile has at most one role.
func (p Profiles) setRole(ctx context.Context, want cloud.Profile, have *types.InstanceProfile) error {
	if err := p.detach(ctx, want.Name, have.Roles, want.Role); err != nil {
		return err
	}
	for _, role := range have.Roles {
		if aws.ToString(role.RoleName) == want.Role {
			return nil
		}
	}
	_, err := p.client.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{
		InstanceProfileName: aws.String(want.Name), RoleName: aws.String(want.Role),
	})
	err = awsfault.WriteCall("adding role "+want.Role+" to instance profile "+want.Name, "iam:AddRoleToInstanceProfile").Wrap(err)
	if fault.Is(err, fault.Missing) && !strings.Contains(messageOf(err), "role") {
		// The profile was just read or created: the change has not propagated in IAM yet.
		return fault.E("adding a role to a new instance profile", fault.Retry, err)
	}
	return err
}

// messageOf returns IAM's message, which is the only way to tell whether the role or the profile is missing.
func messageOf(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	return strings.ToLower(api.ErrorMessage())
}

// detach removes all roles but one.
func (p Profiles) detach(ctx context.Context, name string, roles []types.Role, but string) error {
	for _, role := range roles {
		if aws.ToString(role.RoleName) == but {
			continue
		}
		_, err := p.client.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{
			InstanceProfileName: aws.String(name), RoleName: role.RoleName,
		})
		err = awsfault.WriteCall("removing the role from instance profile "+name, "iam:RemoveRoleFromInstanceProfile").Wrap(err)
		if err != nil && !fault.Is(err, fault.Missing) {
			return err
		}
	}
	return nil
}

func toTags(tags map[string]string) []types.Tag {
	out := make([]types.Tag, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return out
}
