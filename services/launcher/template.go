package launcher

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// codeTemplateNotFound is EC2's error code for an unknown launch template.
const codeTemplateNotFound = "InvalidLaunchTemplateName.NotFoundException"

// ensureTemplates creates the intent's launch templates, except for cached ones.
func (s Service) ensureTemplates(ctx context.Context, intent launchspec.Intent) error {
	for _, template := range intent.Templates {
		now := s.Now()
		if !s.Cache.hasTemplate(template.Name, now) {
			if err := s.EC2.EnsureTemplate(ctx, template); err != nil {
				return fmt.Errorf("ensuring launch template %s: %w", template.Name, err)
			}
			s.Cache.storeTemplate(template.Name, now)
		}
	}
	return nil
}

// forgetTemplates removes the intent's templates from the cache.
func (s Service) forgetTemplates(intent launchspec.Intent) {
	for _, template := range intent.Templates {
		s.Cache.forgetTemplate(template.Name)
	}
}

// isKarpenterTemplate reports whether Karpenter named a launch template: the prefix, which Joist uses
// too, and a decimal hash of 64 bits (Karpenter: pkg/providers/launchtemplate/launchtemplate.go,
// LaunchTemplateName). Joist's names end with 32 hexadecimal digits.
func isKarpenterTemplate(name string) bool {
	hash, prefixed := strings.CutPrefix(name, karpenter.AWSGroup+"/")
	_, err := strconv.ParseUint(hash, 10, 64)
	return prefixed && err == nil
}

// handleTick deletes the cluster's launch templates that are older than TemplateAge and that this
// process has not used since. The next intent that names a deleted template creates it again, so an
// early deletion costs two calls but never a launch. Karpenter's templates stay until their
// EC2NodeClass is deleted: Karpenter may run next to the launcher, which no Lease stops, and its
// launches fail while it caches a deleted template.
func (s Service) handleTick(ctx context.Context, _ event.Envelope, b event.Tick) error {
	if b.Want != event.WantTemplates {
		return nil
	}
	age := s.TemplateAge
	if age <= 0 {
		age = TemplateAge
	}
	key, value := s.ownerTag()
	return s.deleteTemplates(ctx, map[string]string{key: value}, func(t cloud.TemplateInfo) bool {
		return !isKarpenterTemplate(t.Name) && s.Now().Sub(t.Created) >= age && !s.Cache.isTemplateInUse(t.Name, s.Now(), age)
	})
}

// deleteTemplates deletes the templates with the tags that isExpired selects. It
// continues after a template that cannot be deleted.
func (s Service) deleteTemplates(ctx context.Context, tags map[string]string, isExpired func(cloud.TemplateInfo) bool) error {
	templates, err := s.EC2.Templates(ctx, tags)
	if err != nil {
		return fmt.Errorf("listing launch templates: %w", err)
	}
	var failures []error
	deleted := 0
	for _, template := range templates {
		if !isExpired(template) {
			continue
		}
		s.Cache.forgetTemplate(template.Name)
		if err := s.EC2.DeleteTemplate(ctx, template.Name); err != nil {
			failures = append(failures, fmt.Errorf("deleting launch template %s: %w", template.Name, err))
			continue
		}
		deleted++
	}
	host.AddLogFields(ctx, "templates", len(templates), "deleted", deleted)
	return errors.Join(failures...)
}
