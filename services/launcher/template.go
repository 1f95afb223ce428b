package launcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
)

// tick deletes the cluster's launch templates that are past their age. A
// template is made again by the next intent that names it, so deleting one too
// early costs a call and never a launch.
func (s Service) tick(ctx context.Context, _ event.Envelope, b event.Tick) error {
	if b.Want != event.WantTemplates {
		return nil
	}
	key, value := s.ownerTag()
	templates, err := s.EC2.Templates(ctx, map[string]string{key: value})
	if err != nil {
		return fmt.Errorf("listing launch templates: %w", err)
	}
	age := s.TemplateAge
	if age <= 0 {
		age = TemplateAge
	}
	var failures []error
	deleted := 0
	for _, template := range templates {
		if s.Now().Sub(template.Created) < age {
			continue
		}
		if err := s.EC2.DeleteTemplate(ctx, template.Name); err != nil {
			failures = append(failures, fmt.Errorf("deleting launch template %s: %w", template.Name, err))
			continue
		}
		deleted++
	}
	host.Say(ctx, "templates", len(templates), "deleted", deleted)
	return errors.Join(failures...)
}
