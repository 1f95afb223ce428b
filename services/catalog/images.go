package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/services/catalog/internal/image"
	"github.com/joist-autoscaler/joist/services/catalog/internal/status"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// imageQuery is a query for machine images.
type imageQuery struct {
	selectors    []cloud.Selector
	requirements map[string][]image.Requirements
	notes        []string
}

// resolveImages adds the class's machine images to out.
func (s Service) resolveImages(ctx context.Context, r *resolution, out *event.NodeClassResolved) (*event.Problem, error) {
	alias, named, err := r.class.Alias()
	if err != nil {
		problem := status.UnsupportedAlias(err)
		return &problem, nil
	}
	var query imageQuery
	var problem *event.Problem
	if named {
		query, problem, err = s.queryAlias(ctx, r, alias)
	} else {
		query, err = s.queryTerms(ctx, r.class.Spec.AMISelectorTerms)
	}
	if problem != nil || err != nil {
		return problem, err
	}
	return s.chooseImages(ctx, query, out)
}

// queryAlias reads the image ids that AWS publishes for an alias. A missing parameter
// is skipped, because not every version has every variant. Any other error is returned:
// without the variant, its images would seem to have been withdrawn.
func (s Service) queryAlias(ctx context.Context, r *resolution, alias karpenter.Alias) (imageQuery, *event.Problem, error) {
	if r.clusterErr != nil {
		return imageQuery{}, nil, r.clusterErr
	}
	parameters, err := image.ListParameters(alias, r.cluster.Version)
	if err != nil {
		problem := status.UnsupportedAlias(err)
		return imageQuery{}, &problem, nil
	}
	query := imageQuery{requirements: map[string][]image.Requirements{}}
	for _, p := range parameters {
		id, err := s.Images.Parameter(ctx, p.Name)
		if fault.Is(err, fault.Missing, fault.Invalid) {
			continue
		}
		if err != nil {
			return imageQuery{}, nil, fmt.Errorf("reading parameter %s: %w", p.Name, err)
		}
		if query.requirements[id] == nil {
			query.selectors = append(query.selectors, cloud.Selector{ID: id})
		}
		query.requirements[id] = append(query.requirements[id], p.Alternatives...)
	}
	if len(query.selectors) == 0 {
		problem := status.NoPublishedImage(alias, r.cluster.Version)
		return imageQuery{}, &problem, nil
	}
	return query, nil, nil
}

// queryTerms converts selector terms to selectors. cloud.Images searches a name without
// an owner among the images of this account and of Amazon only.
func (s Service) queryTerms(ctx context.Context, terms []karpenter.AMISelectorTerm) (imageQuery, error) {
	var query imageQuery
	for _, term := range terms {
		if term.ID != "" || term.SSMParameter == "" {
			query.selectors = append(query.selectors, cloud.Selector{ID: term.ID, Name: term.Name, Owner: term.Owner, Tags: term.Tags})
			continue
		}
		id, err := s.Images.Parameter(ctx, term.SSMParameter)
		switch {
		case fault.Is(err, fault.Missing, fault.Invalid):
			query.notes = append(query.notes, "parameter "+term.SSMParameter+" does not exist: create it, or correct ssmParameter")
		case err != nil:
			return imageQuery{}, fmt.Errorf("reading parameter %s: %w", term.SSMParameter, err)
		case !strings.HasPrefix(id, "ami-"):
			query.notes = append(query.notes, "parameter "+term.SSMParameter+" does not contain an AMI id: store one in it")
		default:
			query.selectors = append(query.selectors, cloud.Selector{ID: id})
		}
	}
	return query, nil
}

func (s Service) chooseImages(ctx context.Context, query imageQuery, out *event.NodeClassResolved) (*event.Problem, error) {
	var found []cloud.Image
	var err error
	if len(query.selectors) > 0 {
		found, err = s.Images.DescribeImages(ctx, query.selectors)
	}
	if err != nil {
		return classProblem(fmt.Errorf("describing images: %w", err), status.NoImages(query.selectors, query.notes))
	}
	out.Images, err = image.ChooseImages(found, query.requirements)
	if err != nil {
		return nil, fault.E("choosing images", fault.Bug, err)
	}
	if len(out.Images) == 0 {
		problem := status.NoImages(query.selectors, query.notes)
		return &problem, nil
	}
	return status.UnmatchedImageTerms(query.selectors, query.notes), nil
}
