package cloudtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

var images = []behaviour{
	{"is found", findsImages},
	{"has all fields", describesImage},
	{"is found by a parameter", readsParameter},
	{"rejects a missing parameter", rejectsMissingParameter},
}

func findsImages(t *testing.T, s Subject) {
	i := s.Image
	all := []string{i.ID}
	var hundreds []cloud.Selector
	for n := range 250 {
		hundreds = append(hundreds, cloud.Selector{ID: fmt.Sprintf("ami-%017x", n)})
	}
	for _, test := range []selection{
		{"id", []cloud.Selector{{ID: i.ID}}, all},
		{"name and owner", []cloud.Selector{{Name: i.Name, Owner: i.Owner}}, all},
		{"name with * and owner", []cloud.Selector{{Name: i.Name[:len(i.Name)-2] + "*", Owner: i.Owner}}, all},
		{"name and another owner", []cloud.Selector{{Name: i.Name, Owner: "999999999999"}}, nil},
		{"tag", []cloud.Selector{{Tags: i.Tags}}, all},
		{"tag with ?", []cloud.Selector{{Tags: map[string]string{"joist/image": "?es"}}}, all},
		{"another tag", []cloud.Selector{{Tags: map[string]string{"joist/image": "no"}}}, nil},
		{"id and owner", []cloud.Selector{{ID: i.ID, Owner: i.Owner}}, all},
		{"two selectors for the same image", []cloud.Selector{{ID: i.ID}, {Name: i.Name, Owner: i.Owner}}, all},
		{"an unknown ID and a known ID", []cloud.Selector{{ID: "ami-0123456789abcdef0"}, {ID: i.ID}}, all},
		{"hundreds of unknown IDs and a known ID", append(hundreds, cloud.Selector{ID: i.ID}), all},
		{"an unknown id", []cloud.Selector{{ID: "ami-0123456789abcdef0"}}, nil},
		{"nothing", nil, nil},
		{"an empty selector", []cloud.Selector{{}}, nil},
	} {
		found, err := s.DescribeImages(context.Background(), test.selectors)
		must(t, err)
		var got []string
		for _, image := range found {
			got = append(got, image.ID)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func describesImage(t *testing.T, s Subject) {
	found, err := s.DescribeImages(context.Background(), []cloud.Selector{{ID: s.Image.ID}})
	must(t, err)
	if diff := cmp.Diff([]cloud.Image{s.Image}, found); diff != "" {
		t.Error(diff)
	}
}

func readsParameter(t *testing.T, s Subject) {
	got, err := s.Parameter(context.Background(), s.ImageParameter)
	must(t, err)
	if got != s.Image.ID {
		t.Errorf("got %q, want %q", got, s.Image.ID)
	}
}

func rejectsMissingParameter(t *testing.T, s Subject) {
	_, err := s.Parameter(context.Background(), "/joist/nowhere")
	wantKind(t, err, fault.Missing)
}

var clusters = []behaviour{
	{"is described", describesCluster},
	{"rejects a missing cluster", rejectsMissingCluster},
}

func describesCluster(t *testing.T, s Subject) {
	got, err := s.DescribeCluster(context.Background(), s.Cluster.Name)
	must(t, err)
	if diff := cmp.Diff(s.Cluster, got); diff != "" {
		t.Error(diff)
	}
}

func rejectsMissingCluster(t *testing.T, s Subject) {
	_, err := s.DescribeCluster(context.Background(), "joist-nowhere")
	wantKind(t, err, fault.Missing)
}
