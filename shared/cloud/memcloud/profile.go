package memcloud

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// AddRole adds an IAM role for profiles.
func (c *Cloud) AddRole(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.roles[name] = true
}

// DeleteRole is iam:DeleteRole: no profile may contain the role.
func (c *Cloud) DeleteRole(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, profile := range slices.Sorted(maps.Keys(c.profiles)) {
		if c.profiles[profile].Role == name {
			return refuse(fault.Invalid, "DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
		}
	}
	delete(c.roles, name)
	return nil
}

// EnsureProfile makes up to five IAM calls, each of which may fail.
func (c *Cloud) EnsureProfile(ctx context.Context, want cloud.Profile) error {
	want.Role = cloud.RoleName(want.Role)
	have, err := c.Profile(ctx, want.Name)
	if fault.Is(err, fault.Missing) {
		have, err = cloud.Profile{Tags: want.Tags}, c.CreateProfile(ctx, want)
	}
	if err != nil && !fault.Is(err, fault.Conflict) {
		return err
	}
	if !contains(have.Tags, want.Tags) {
		if err := c.TagProfile(ctx, want.Name, want.Tags); err != nil {
			return err
		}
	}
	if have.Role == want.Role {
		return nil
	}
	if have.Role != "" {
		if err := c.DetachRole(ctx, want.Name, have.Role); err != nil && !fault.Is(err, fault.Missing) {
			return err
		}
	}
	return c.AttachRole(ctx, want.Name, want.Role)
}

// DeleteProfile removes the role and deletes the profile, if it exists.
func (c *Cloud) DeleteProfile(ctx context.Context, name string) error {
	have, err := c.Profile(ctx, name)
	if err == nil && have.Role != "" {
		err = c.DetachRole(ctx, name, have.Role)
	}
	if err == nil {
		err = c.RemoveProfile(ctx, name)
	}
	if fault.Is(err, fault.Missing) {
		return nil
	}
	return err
}

// Profile is iam:GetInstanceProfile.
func (c *Cloud) Profile(ctx context.Context, name string) (cloud.Profile, error) {
	var out cloud.Profile
	err := c.call(ctx, GetProfile, func(time.Time) error {
		p, err := c.profile(name)
		if err == nil {
			out = *p
			out.Tags = maps.Clone(p.Tags)
		}
		return err
	})
	return out, err
}

func contains(have, want map[string]string) bool {
	for key, value := range want {
		if had, ok := have[key]; !ok || had != value {
			return false
		}
	}
	return true
}

// ListProfiles is iam:ListInstanceProfiles, which omits tags.
func (c *Cloud) ListProfiles(ctx context.Context, path string) ([]cloud.Profile, error) {
	var out []cloud.Profile
	err := c.call(ctx, ListProfiles, func(time.Time) error {
		for _, name := range slices.Sorted(maps.Keys(c.profiles)) {
			if p := *c.profiles[name]; strings.HasPrefix(p.Path, path) {
				p.Tags = nil
				out = append(out, p)
			}
		}
		return nil
	})
	return out, err
}

// CreateProfile is iam:CreateInstanceProfile: a profile without a role.
func (c *Cloud) CreateProfile(ctx context.Context, p cloud.Profile) error {
	return c.call(ctx, CreateProfile, func(now time.Time) error {
		if c.profiles[p.Name] != nil {
			return refuse(fault.Conflict, "EntityAlreadyExists", "Instance Profile %s already exists.", p.Name)
		}
		tags := maps.Clone(p.Tags)
		if tags == nil {
			tags = map[string]string{}
		}
		c.profiles[p.Name] = &cloud.Profile{Name: p.Name, Path: p.Path, Tags: tags, Created: now}
		c.note(CreateProfile, "", "", p.Name)
		return nil
	})
}

// TagProfile is iam:TagInstanceProfile.
func (c *Cloud) TagProfile(ctx context.Context, name string, tags map[string]string) error {
	return c.change(ctx, TagProfile, name, func(p *cloud.Profile) error {
		maps.Copy(p.Tags, tags)
		return nil
	})
}

// AttachRole is iam:AddRoleToInstanceProfile: a profile has at most one role.
func (c *Cloud) AttachRole(ctx context.Context, name, role string) error {
	return c.change(ctx, AttachRole, name, func(p *cloud.Profile) error {
		switch {
		case strings.Contains(role, "/"):
			return refuse(fault.Invalid, "ValidationError", "The specified value for roleName is invalid.")
		case !c.roles[role]:
			return refuse(fault.Missing, "NoSuchEntity", "The role with name %s cannot be found.", role)
		case p.Role != "":
			return refuse(fault.Invalid, "LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
		}
		p.Role = role
		return nil
	})
}

// DetachRole is iam:RemoveRoleFromInstanceProfile.
func (c *Cloud) DetachRole(ctx context.Context, name, role string) error {
	return c.change(ctx, DetachRole, name, func(p *cloud.Profile) error {
		if p.Role != role {
			return refuse(fault.Missing, "NoSuchEntity", "The role %s is not in the instance profile %s.", role, name)
		}
		p.Role = ""
		return nil
	})
}

// RemoveProfile is iam:DeleteInstanceProfile: the profile must have no role.
func (c *Cloud) RemoveProfile(ctx context.Context, name string) error {
	return c.change(ctx, DeleteProfile, name, func(p *cloud.Profile) error {
		if p.Role != "" {
			return refuse(fault.Invalid, "DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
		}
		delete(c.profiles, name)
		return nil
	})
}

func (c *Cloud) change(ctx context.Context, action Action, name string, do func(*cloud.Profile) error) error {
	return c.call(ctx, action, func(time.Time) error {
		p, err := c.profile(name)
		if err == nil {
			err = do(p)
		}
		if err == nil {
			c.note(action, "", "", name)
		}
		return err
	})
}

func (c *Cloud) profile(name string) (*cloud.Profile, error) {
	if p := c.profiles[name]; p != nil {
		return p, nil
	}
	return nil, refuse(fault.Missing, "NoSuchEntity", "Instance Profile %s cannot be found.", name)
}
