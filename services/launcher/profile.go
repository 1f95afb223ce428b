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
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// profileRetention is how long a profile outlives the role that it was for, so
	// that no launch under way misses it.
	profileRetention = time.Hour
	// supersededTag is since when a profile is of no use, or empty.
	supersededTag = "joist.sh/superseded"
	// regionTag is demanded by the IAM policies of this ecosystem.
	regionTag = "topology.kubernetes.io/region"
)

// ensureProfile makes sure of the class's instance profile, and removes those that
// earlier roles of the class had.
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
		// What is left over costs nothing and is looked at again.
		host.Say(ctx, "profile_sweep", err.Error())
	}
	return nil
}

// checkProfile refuses to make what the seeds' policies deny, and
// what would not be this cluster's: a profile hands out rights.
func (s Service) checkProfile(b event.NodeClassEnsure) error {
	op := "checking instance profile " + b.Profile
	key, value := s.ownerTag()
	want := map[string]string{key: value, karpenter.NodeClassTagKey: b.Name, regionTag: b.Tags[regionTag]}
	for key, value := range want {
		if value == "" || b.Tags[key] != value {
			return fault.F(op, fault.Poison, "the tag %s is %q", key, b.Tags[key])
		}
	}
	if path := profilePath(b.Tags[regionTag], s.Cluster.Name, b.UID); b.Path != path {
		return fault.F(op, fault.Poison, "its path is %q and not %q", b.Path, path)
	}
	if s.Profiles == nil {
		return fault.E(op, fault.Denied, errors.New("this launcher may not write IAM")).
			WithHint("set spec.instanceProfile on EC2NodeClass %s, or give the launcher the iam actions", b.Name)
	}
	return nil
}

// profilePath is upstream's, so that what Karpenter made for the class is
// found there too.
func profilePath(region, cluster, class string) string {
	return "/karpenter/" + region + "/" + cluster + "/" + class + "/"
}

// getOwnProfile reads a profile and refuses one that somebody else has made, or that
// was made for another class.
func (s Service) getOwnProfile(ctx context.Context, b event.NodeClassEnsure, name string) (cloud.Profile, error) {
	have, err := s.Profiles.Profile(ctx, name)
	if err != nil {
		return cloud.Profile{}, err
	}
	key, value := s.ownerTag()
	if have.Tags[key] != value {
		s.addCount(ForeignSkipped, 1, "profile")
		return cloud.Profile{}, fault.F("checking the owner of instance profile "+name, fault.Foreign, "it does not carry %s=%s", key, value).
			WithHint("delete or rename it, or name it in spec.instanceProfile")
	}
	if have.Path != b.Path {
		s.addCount(ForeignSkipped, 1, "profile")
		return cloud.Profile{}, fault.F("checking the owner of instance profile "+name, fault.Foreign, "its path is %q and not %q", have.Path, b.Path).
			WithHint("delete it if it is of no use; it was made for something else than EC2NodeClass %s", b.Name)
	}
	return have, nil
}

// deleteProfiles removes every profile that was made for the class. One that cannot
// be removed does not keep the others.
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

// listOtherProfiles names the class's profiles beside the one that it runs with now.
// Where they may not be listed, only the one that the class remembers is
// known.
func (s Service) listOtherProfiles(ctx context.Context, b event.NodeClassEnsure) ([]string, error) {
	listed, err := s.Profiles.ListProfiles(ctx, b.Path)
	if err != nil && !fault.Is(err, fault.Denied) {
		return nil, err
	}
	if err != nil {
		host.Say(ctx, "profiles_unlisted", err.Error())
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

// retireProfiles removes the class's other profiles, and reports whether some are
// left. Each is marked when it is first seen out of use, and removed an hour later
// when no instance runs with it: the mark is on the profile because nothing else
// remembers.
func (s Service) retireProfiles(ctx context.Context, b event.NodeClassEnsure) (left bool, err error) {
	if err := s.checkProfile(b); err != nil {
		return true, err
	}
	names, err := s.listOtherProfiles(ctx, b)
	if err != nil {
		return true, err
	}
	var failures []error
	for _, name := range names {
		gone, err := s.retireProfile(ctx, b, name)
		if err != nil && !fault.Is(err, fault.Missing) {
			failures = append(failures, fmt.Errorf("retiring instance profile %s: %w", name, err))
		}
		left = left || !gone && err == nil
	}
	return left, errors.Join(failures...)
}

// retireProfile brings one profile nearer to its end, and reports whether it got there.
func (s Service) retireProfile(ctx context.Context, b event.NodeClassEnsure, name string) (gone bool, err error) {
	have, err := s.getOwnProfile(ctx, b, name)
	if err != nil {
		return false, err
	}
	since, err := time.Parse(time.RFC3339, have.Tags[supersededTag])
	if err != nil {
		// Policies demand the others beside every tag that is set.
		tags := maps.Clone(b.Tags)
		tags[supersededTag] = s.Now().UTC().Format(time.RFC3339)
		return false, s.Profiles.TagProfile(ctx, name, tags)
	}
	if s.Now().Sub(since) < profileRetention {
		return false, nil
	}
	used, err := s.isProfileInUse(ctx, name)
	if err != nil || used {
		return false, err
	}
	err = s.Profiles.DeleteProfile(ctx, name)
	return err == nil, err
}

// isProfileInUse reports whether an instance of the cluster has the profile: without it
// the node would lose its rights.
func (s Service) isProfileInUse(ctx context.Context, name string) (bool, error) {
	key, value := s.ownerTag()
	alive := []cloud.State{cloud.Pending, cloud.Running, cloud.Stopping, cloud.Stopped, cloud.ShuttingDown}
	found, err := s.EC2.DescribeInstances(ctx, cloud.InstanceFilter{Tags: map[string]string{key: value}, States: alive})
	if err != nil {
		return false, fmt.Errorf("looking for instances with instance profile %s: %w", name, err)
	}
	for _, i := range found {
		if i.Profile == name {
			return true, nil
		}
	}
	return false, nil
}
