package memcloud

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// template is a launch template, with the times from which Describe shows it and CreateFleet finds it.
type template struct {
	cloud.Template
	created, visible, usable time.Time
}

// EnsureTemplate creates the template unless the name exists.
func (c *Cloud) EnsureTemplate(ctx context.Context, t cloud.Template) error {
	err := c.CreateTemplate(ctx, t)
	if code, _ := Code(err); code == "InvalidLaunchTemplateName.AlreadyExistsException" {
		return nil
	}
	return err
}

// CreateTemplate behaves like EC2: an existing name is fault.Conflict.
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
			visible: now.Add(c.drawLag("template", t.Name)),
			usable:  now.Add(c.upTo(c.faults.TemplateLag, "usable template", t.Name)),
		}
		c.note(CreateTemplate, "", "", t.Name)
		return nil
	})
}

// Templates returns the templates that have all of the tags, by name.
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

// DeleteTemplate deletes a template, if it exists.
func (c *Cloud) DeleteTemplate(ctx context.Context, name string) error {
	err := c.DeleteTemplateStrictly(ctx, name)
	if code, _ := Code(err); code == "InvalidLaunchTemplateName.NotFoundException" {
		return nil
	}
	return err
}

// DeleteTemplateStrictly behaves like EC2: a missing template is fault.Missing.
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

// Template returns a complete template, for tests.
func (c *Cloud) Template(name string) (cloud.Template, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.templates[name]
	if t == nil {
		return cloud.Template{}, false
	}
	return t.Template, true
}
