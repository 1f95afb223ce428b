package cloudtest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

var templates = []behaviour{
	{"is ensured twice", ensuresTemplateTwice},
	{"is listed by its tags", listsTemplates},
	{"is deleted twice", deletesTemplateTwice},
	{"tags the launched instances", tagsFromTemplate},
	{"rejects a malformed name", rejectsTemplateName},
}

func ensuresTemplateTwice(t *testing.T, s Subject) {
	for range 2 {
		must(t, s.EnsureTemplate(context.Background(), s.template("joist-twice")))
	}
	if names := s.templateNames(t, map[string]string{"joist/test": "template"}); !cmp.Equal(names, []string{"joist-twice"}) {
		t.Errorf("templates %v", names)
	}
}

func (s Subject) templateNames(t *testing.T, tags map[string]string) []string {
	t.Helper()
	s.wait(0)
	found, err := s.Templates(context.Background(), tags)
	must(t, err)
	var names []string
	for _, info := range found {
		names = append(names, info.Name)
		if info.Created.IsZero() {
			t.Errorf("%s has no creation time", info.Name)
		}
	}
	return names
}

func listsTemplates(t *testing.T, s Subject) {
	ctx := context.Background()
	one, two := s.template("joist-one"), s.template("joist-two")
	two.Tags = map[string]string{"joist/test": "template", "more": "yes"}
	must(t, s.EnsureTemplate(ctx, one))
	must(t, s.EnsureTemplate(ctx, two))
	for _, test := range []struct {
		tags map[string]string
		want []string
	}{
		{map[string]string{"joist/test": "template"}, []string{"joist-one", "joist-two"}},
		{map[string]string{"joist/test": "template", "more": "yes"}, []string{"joist-two"}},
		{map[string]string{"more": ""}, []string{"joist-two"}},
		{map[string]string{"more": "no"}, nil},
	} {
		if diff := cmp.Diff(test.want, s.templateNames(t, test.tags)); diff != "" {
			t.Errorf("by %v: %s", test.tags, diff)
		}
	}
	found, err := s.Templates(ctx, map[string]string{"more": "yes"})
	must(t, err)
	if diff := cmp.Diff(two.Tags, found[0].Tags); diff != "" {
		t.Errorf("tags: %s", diff)
	}
}

func deletesTemplateTwice(t *testing.T, s Subject) {
	must(t, s.EnsureTemplate(context.Background(), s.template("joist-gone")))
	for range 2 {
		must(t, s.DeleteTemplate(context.Background(), "joist-gone"))
	}
	if names := s.templateNames(t, map[string]string{"joist/test": ""}); len(names) != 0 {
		t.Errorf("templates after deletion: %v", names)
	}
}

func tagsFromTemplate(t *testing.T, s Subject) {
	ctx := context.Background()
	request := s.request(t, "tags", 1)
	template := s.template("joist-tags")
	template.TagSets = append(template.TagSets, cloud.TagSet{Resource: "instance", Tags: map[string]string{"from": "template"}})
	must(t, s.EnsureTemplate(ctx, template))
	request.Configs[0].Template = "joist-tags"
	got := ids(s.launch(t, request))
	s.wait(0)
	found := s.described(t, cloud.InstanceFilter{IDs: got})
	if len(found) != 1 || found[0].Tags["from"] != "template" || found[0].Tags["joist/test"] != t.Name() {
		t.Errorf("launched %+v", found)
	}
}

func rejectsTemplateName(t *testing.T, s Subject) {
	wantKind(t, s.EnsureTemplate(context.Background(), s.template("x")), fault.Invalid)
}
