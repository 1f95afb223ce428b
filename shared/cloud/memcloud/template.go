package memcloud

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// template is a launch template, from when Describe shows it and from when
// CreateFleet finds it.
type template struct {
	cloud.Template
	created, visible, usable time.Time
}

// EnsureTemplate creates the template unless there is one of that name.
func (c *Cloud) EnsureTemplate(ctx context.Context, t cloud.Template) error {
	err := c.CreateTemplate(ctx, t)
	if code, _ := Code(err); code == "InvalidLaunchTemplateName.AlreadyExistsException" {
		return nil
	}
	return err
}

// CreateTemplate is as EC2 does it: a name that is taken is fault.Conflict.
func (c *Cloud) CreateTemplate(ctx context.Context, t cloud.Template) error {
	return c.call(ctx, CreateTemplate, func(now time.Time) error {
		if n := len(t.Name); n < 3 || n > 128 {
			return refuse(fault.Invalid, "InvalidLaunchTemplateName.MalformedException",
				"The launch template name %q does not have 3 to 128 characters.", t.Name)
		}
		if c.templates[t.Name] != nil {
			return refuse(fault.Conflict, "InvalidLaunchTemplateName.AlreadyExistsException",
				"Launch template name already in use.")
		}
		c.templates[t.Name] = &template{
			Template: t, created: now,
			visible: now.Add(c.upTo(c.faults.Lag, "template", t.Name)),
			usable:  now.Add(c.upTo(c.faults.TemplateLag, "usable template", t.Name)),
		}
		c.note(CreateTemplate, "", "", t.Name)
		return nil
	})
}

// Templates lists the templates that carry all of the tags, by name.
func (c *Cloud) Templates(ctx context.Context, tags map[string]string) ([]cloud.TemplateInfo, error) {
	var out []cloud.TemplateInfo
	err := c.call(ctx, DescribeTemplates, func(now time.Time) error {
		for _, name := range slices.Sorted(maps.Keys(c.templates)) {
			t := c.templates[name]
			if !t.visible.After(now) && matches(cloud.InstanceFilter{Tags: tags}, cloud.Instance{Tags: t.Tags}) {
				out = append(out, cloud.TemplateInfo{Name: name, Created: t.created, Tags: maps.Clone(t.Tags)})
			}
		}
		return nil
	})
	return out, err
}

// DeleteTemplate removes a template, if it is there.
func (c *Cloud) DeleteTemplate(ctx context.Context, name string) error {
	err := c.DeleteTemplateStrictly(ctx, name)
	if code, _ := Code(err); code == "InvalidLaunchTemplateName.NotFoundException" {
		return nil
	}
	return err
}

// DeleteTemplateStrictly is as EC2 does it: one that is gone is fault.Missing.
func (c *Cloud) DeleteTemplateStrictly(ctx context.Context, name string) error {
	return c.call(ctx, DeleteTemplate, func(time.Time) error {
		if c.templates[name] == nil {
			return refuse(fault.Missing, "InvalidLaunchTemplateName.NotFoundException",
				"The specified launch template, with template name %s, does not exist.", name)
		}
		delete(c.templates, name)
		c.note(DeleteTemplate, "", "", name)
		return nil
	})
}

// Template tells the whole of a template, as nobody but a test can see it.
func (c *Cloud) Template(name string) (cloud.Template, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.templates[name]
	if t == nil {
		return cloud.Template{}, false
	}
	return t.Template, true
}
