package ec2cloud

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// query is one Describe call. All its filters must match, so each selector needs its own call; selectors by id only
// share calls.
type query struct {
	owner   string
	byName  bool
	filters []types.Filter
}

// queries returns the calls for the selectors; each call also has the common filters. An empty selector would match
// everything, and is skipped.
func queries(selectors []cloud.Selector, idFilter, nameFilter string, common ...types.Filter) []query {
	var out []query
	var ids []string
	for _, s := range selectors {
		if s.Any {
			return []query{{filters: common}}
		}
		if s.ID != "" && s.Name == "" && s.Owner == "" && len(s.Tags) == 0 {
			ids = append(ids, s.ID)
			continue
		}
		if s.ID != "" || s.Name != "" || s.Owner != "" || len(s.Tags) > 0 {
			q := toQuery(s, idFilter, nameFilter)
			q.filters = append(q.filters, common...)
			out = append(out, q)
		}
	}
	for some := range chunkIDs(ids, common) {
		out = append(out, query{filters: append([]types.Filter{filter(idFilter, some...)}, common...)})
	}
	return out
}

func toQuery(s cloud.Selector, idFilter, nameFilter string) query {
	out := query{owner: s.Owner, byName: s.Name != "" && s.ID == ""}
	if s.ID != "" {
		out.filters = append(out.filters, filter(idFilter, s.ID))
	}
	if s.Name != "" {
		out.filters = append(out.filters, filter(nameFilter, s.Name))
	}
	for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
		if s.Tags[key] == "*" {
			out.filters = append(out.filters, filter("tag-key", key))
		} else {
			out.filters = append(out.filters, filter("tag:"+key, s.Tags[key]))
		}
	}
	return out
}
