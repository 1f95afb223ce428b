package launcher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

const (
	// profileRetention is how long a profile is kept after the class changed its role,
	// so that launches in flight still find it.
	profileRetention = time.Hour
	// supersededTag has the time at which the profile was first found unused; it is empty on a
	// profile in use.
	supersededTag = "joist.sh/superseded"
	// regionTag is required by the usual IAM policies.
	regionTag = "topology.kubernetes.io/region"
)

// ensureProfile creates or updates the class's instance profile and deletes the unused
// profiles of its former roles.
func (s Service) ensureProfile(ctx context.Context, b event.NodeClassEnsure) error {
	if err := s.checkProfile(b); err != nil {
		return err
	}
	have, err := s.getOwnProfile(ctx, b, b.Profile)
	if err != nil && !fault.Is(err, fault.Missing) {
		return err
	}
	want := cloud.Profile{Name: b.Profile, Path: b.Path, Role: b.Role, Tags: maps.Clone(b.Tags)}
	if have.Tags[supersededTag] != "" {
		want.Tags[supersededTag] = ""
	}
	if err := s.Profiles.EnsureProfile(ctx, want); err != nil {
		return err
	}
	if _, err := s.retireProfiles(ctx, b); err != nil {
		// Remaining profiles cost nothing; the next message retries.
		host.AddLogFields(ctx, "profile_cleanup_error", err.Error())
	}
	return nil
}

// checkProfile returns fault.Poison for a profile without the tags and the path of this cluster and
// class, because a profile grants permissions. It returns fault.Denied if the launcher has no
// permissions for IAM.
func (s Service) checkProfile(b event.NodeClassEnsure) error {
	op := "checking instance profile " + b.Profile
	key, value := s.ownerTag()
	want := map[string]string{key: value, karpenter.NodeClassTagKey: b.Name, regionTag: b.Tags[regionTag]}
	for key, value := range want {
		if value == "" || b.Tags[key] != value {
			return fault.F(op, fault.Poison, "the tag %s is %q", key, b.Tags[key])
		}
	}
	if path := launchspec.ProfilePath(b.Tags[regionTag], s.Cluster.Name) + b.UID + "/"; b.Path != path {
		return fault.F(op, fault.Poison, "the path is %q instead of %q", b.Path, path)
	}
	if s.Profiles == nil {
		return fault.E(op, fault.Denied, errors.New("this launcher has no permissions for IAM")).
			WithHint("set spec.instanceProfile on EC2NodeClass %s, or grant the iam actions to the launcher", b.Name)
	}
	return nil
}

// getOwnProfile returns a profile. The error is fault.Foreign if the profile belongs to
// another owner or class, and fault.Missing if it does not exist.
func (s Service) getOwnProfile(ctx context.Context, b event.NodeClassEnsure, name string) (cloud.Profile, error) {
	have, err := s.Profiles.Profile(ctx, name)
	if err != nil {
		return cloud.Profile{}, err
	}
	key, value := s.ownerTag()
	if have.Tags[key] != value {
		s.Metrics.Record(metric.ForeignRequestsRefused, 1, "profile")
		return cloud.Profile{}, fault.F("checking the owner of instance profile "+name, fault.Foreign, "it does not have the tag %s=%s", key, value).
			WithHint("delete or rename it, or name it in spec.instanceProfile")
	}
	if have.Path != b.Path {
		s.Metrics.Record(metric.ForeignRequestsRefused, 1, "profile")
		return cloud.Profile{}, fault.F("checking the owner of instance profile "+name, fault.Foreign, "its path is %q instead of %q", have.Path, b.Path).
			WithHint("it was not created for EC2NodeClass %s; delete it if it is unused", b.Name)
	}
	return have, nil
}

// deleteProfiles deletes all profiles that were created for the class. It continues
// after a profile that cannot be deleted.
func (s Service) deleteProfiles(ctx context.Context, b event.NodeClassEnsure) error {
	if err := s.checkProfile(b); err != nil {
		return err
	}
	names, err := s.listOtherProfiles(ctx, b)
	if err != nil {
		return err
	}
	if b.Role != "" {
		names = append(names, b.Profile)
	}
	var failures []error
	for _, name := range names {
		_, err := s.getOwnProfile(ctx, b, name)
		if err == nil {
			err = s.Profiles.DeleteProfile(ctx, name)
		}
		if err != nil && !fault.Is(err, fault.Missing) {
			failures = append(failures, fmt.Errorf("deleting instance profile %s: %w", name, err))
		}
	}
	return errors.Join(failures...)
}

// listOtherProfiles returns the names of the class's profiles except its current one. Without
// permission to list profiles it returns only the former profile in the class's status.
func (s Service) listOtherProfiles(ctx context.Context, b event.NodeClassEnsure) ([]string, error) {
	listed, err := s.Profiles.ListProfiles(ctx, b.Path)
	if err != nil && !fault.Is(err, fault.Denied) {
		return nil, err
	}
	if err != nil {
		host.AddLogFields(ctx, "profile_list_error", err.Error())
	}
	var names []string
	if b.Former != "" {
		names = append(names, b.Former)
	}
	for _, p := range listed {
		if p.Name != b.Former {
			names = append(names, p.Name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == b.Profile }), nil
}

// retireProfiles deletes the class's other profiles and reports whether some remain. It tags a
// profile when it first finds it unused, and deletes it an hour later if no instance has it. The
// time is a tag of the profile, because the launcher has no other persistent state.
func (s Service) retireProfiles(ctx context.Context, b event.NodeClassEnsure) (remaining bool, err error) {
	if err := s.checkProfile(b); err != nil {
		return true, err
	}
	names, err := s.listOtherProfiles(ctx, b)
	if err != nil {
		return true, err
	}
	var failures []error
	for _, name := range names {
		deleted, err := s.retireProfile(ctx, b, name)
		if err != nil && !fault.Is(err, fault.Missing) {
			failures = append(failures, fmt.Errorf("retiring instance profile %s: %w", name, err))
		}
		remaining = remaining || !deleted && err == nil
	}
	return remaining, errors.Join(failures...)
}

// retireProfile tags one unused profile or deletes it, and reports whether it deleted it.
func (s Service) retireProfile(ctx context.Context, b event.NodeClassEnsure, name string) (deleted bool, err error) {
	have, err := s.getOwnProfile(ctx, b, name)
	if err != nil {
		return false, err
	}
	since, err := time.Parse(time.RFC3339, have.Tags[supersededTag])
	if err != nil {
		// The usual IAM policies require the cluster's tags in each request that sets a tag.
		tags := maps.Clone(b.Tags)
		tags[supersededTag] = s.Now().UTC().Format(time.RFC3339)
		return false, s.Profiles.TagProfile(ctx, name, tags)
	}
	if s.Now().Sub(since) < profileRetention {
		return false, nil
	}
	inUse, err := s.isProfileInUse(ctx, name)
	if err != nil || inUse {
		return false, err
	}
	err = s.Profiles.DeleteProfile(ctx, name)
	return err == nil, err
}

// isProfileInUse reports whether an instance of the cluster has the profile. Without
// the profile the node would lose its permissions.
func (s Service) isProfileInUse(ctx context.Context, name string) (bool, error) {
	key, value := s.ownerTag()
	alive := []cloud.State{cloud.Pending, cloud.Running, cloud.Stopping, cloud.Stopped, cloud.ShuttingDown}
	instances, err := s.EC2.DescribeInstances(ctx, cloud.InstanceFilter{Tags: map[string]string{key: value}, States: alive})
	if err != nil {
		return false, fmt.Errorf("looking for instances with instance profile %s: %w", name, err)
	}
	return slices.ContainsFunc(instances, func(i cloud.Instance) bool { return i.Profile == name }), nil
}
