package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/services/catalog/internal/image"
	"github.com/joist-autoscaler/joist/services/catalog/internal/remedy"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// search is what to ask EC2 for, and what is known before it answers.
type search struct {
	selectors []cloud.Selector
	known     map[string][]image.Requirements
	notes     []string
}

// images finds the machine images.
func (s Service) images(ctx context.Context, q *question, out *event.NodeClassResolved) (*event.Problem, error) {
	alias, named, err := q.class.Alias()
	if err != nil {
		problem := remedy.Alias(err)
		return &problem, nil
	}
	var look search
	var problem *event.Problem
	if named {
		look, problem, err = s.published(ctx, q, alias)
	} else {
		look, err = s.terms(ctx, q.class.Spec.AMISelectorTerms)
	}
	if problem != nil || err != nil {
		return problem, err
	}
	return s.choose(ctx, look, out)
}

// published reads the ids that AWS publishes for an alias. One that is missing
// is no error: not every version has every variant. Any other error is, for
// leaving a variant out would look like its end.
func (s Service) published(ctx context.Context, q *question, alias karpenter.Alias) (search, *event.Problem, error) {
	if q.clusterErr != nil {
		return search{}, nil, q.clusterErr
	}
	parameters, err := image.Parameters(alias, q.cluster.Version)
	if err != nil {
		problem := remedy.Alias(err)
		return search{}, &problem, nil
	}
	look := search{known: map[string][]image.Requirements{}}
	for _, p := range parameters {
		id, err := s.Images.Parameter(ctx, p.Name)
		if fault.Is(err, fault.Missing, fault.Invalid) {
			continue
		}
		if err != nil {
			return search{}, nil, fmt.Errorf("reading parameter %s: %w", p.Name, err)
		}
		if look.known[id] == nil {
			look.selectors = append(look.selectors, cloud.Selector{ID: id})
		}
		look.known[id] = append(look.known[id], p.Fits...)
	}
	if len(look.selectors) == 0 {
		problem := remedy.Published(alias, q.cluster.Version)
		return search{}, &problem, nil
	}
	return look, nil, nil
}

// terms turns selector terms into selectors. A name without an owner is looked
// for among this account's and Amazon's images alone; the port sees to that.
func (s Service) terms(ctx context.Context, terms []karpenter.AMISelectorTerm) (search, error) {
	var look search
	for _, term := range terms {
		if term.ID != "" || term.SSMParameter == "" {
			look.selectors = append(look.selectors, cloud.Selector{ID: term.ID, Name: term.Name, Owner: term.Owner, Tags: term.Tags})
			continue
		}
		id, err := s.Images.Parameter(ctx, term.SSMParameter)
		switch {
		case fault.Is(err, fault.Missing, fault.Invalid):
			look.notes = append(look.notes, "parameter "+term.SSMParameter+" does not exist, so create it or correct ssmParameter:")
		case err != nil:
			return search{}, fmt.Errorf("reading parameter %s: %w", term.SSMParameter, err)
		case !strings.HasPrefix(id, "ami-"):
			look.notes = append(look.notes, "parameter "+term.SSMParameter+" does not hold an AMI id, so store one in it")
		default:
			look.selectors = append(look.selectors, cloud.Selector{ID: id})
		}
	}
	return look, nil
}

func (s Service) choose(ctx context.Context, look search, out *event.NodeClassResolved) (*event.Problem, error) {
	var found []cloud.Image
	var err error
	if len(look.selectors) > 0 {
		found, err = s.Images.DescribeImages(ctx, look.selectors)
	}
	if err != nil {
		return refused(fmt.Errorf("describing images: %w", err), remedy.Images(look.selectors, look.notes))
	}
	out.Images, err = image.Choose(found, look.known)
	if err != nil {
		return nil, fault.E("choosing images", fault.Bug, err)
	}
	if len(out.Images) == 0 {
		problem := remedy.Images(look.selectors, look.notes)
		return &problem, nil
	}
	return remedy.SomeImages(look.selectors, look.notes), nil
}
