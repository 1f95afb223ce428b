// Package iam is IAM's query protocol over memcloud: instance profiles alone.
package iam

import (
	"context"
	"encoding/xml"
	"net/http"

	"github.com/joist-autoscaler/joist/integration/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/memcloud"
)

const (
	version   = "2010-05-08"
	namespace = "https://iam.amazonaws.com/doc/2010-05-08/"
)

// Service answers IAM's calls from a model.
type Service struct {
	cloud *memcloud.Cloud
}

// New serves the model.
func New(cloud *memcloud.Cloud) *Service { return &Service{cloud: cloud} }

// Match recognizes IAM by the version of its API.
func (s *Service) Match(r *http.Request, body []byte) bool { return query.Is(r, body, version) }

// ServeHTTP answers one call.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	form, err := query.Read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	profile, err := s.do(context.WithoutCancel(r.Context()), form)
	if err != nil {
		code, message, status := query.Refusal(err)
		if code == "NoSuchEntity" {
			status = http.StatusNotFound
		}
		query.Refuse(w, namespace, status, code, message)
		return
	}
	query.Write(w, http.StatusOK, answer{form.Get("Action"), profile})
}

// do runs one operation; it gives a profile where the operation tells one.
func (s *Service) do(ctx context.Context, form query.Form) (*cloud.Profile, error) {
	name, role := form.Get("InstanceProfileName"), form.Get("RoleName")
	switch form.Get("Action") {
	case "GetInstanceProfile":
		p, err := s.cloud.Profile(ctx, name)
		return &p, err
	case "CreateInstanceProfile":
		p := cloud.Profile{Name: name, Path: form.Get("Path"), Tags: form.Tags("Tags.member")}
		return &p, s.cloud.CreateProfile(ctx, p)
	case "DeleteInstanceProfile":
		return nil, s.cloud.RemoveProfile(ctx, name)
	case "TagInstanceProfile":
		return nil, s.cloud.TagProfile(ctx, name, form.Tags("Tags.member"))
	case "AddRoleToInstanceProfile":
		return nil, s.cloud.AttachRole(ctx, name, role)
	case "RemoveRoleFromInstanceProfile":
		return nil, s.cloud.DetachRole(ctx, name, role)
	}
	return nil, query.ErrUnserved
}

// answer is <ActionResponse><ActionResult>, as IAM nests them.
type answer struct {
	action  string
	profile *cloud.Profile
}

type result struct {
	Profile *profile `xml:"InstanceProfile"`
}

type profile struct {
	Name  string `xml:"InstanceProfileName"`
	Path  string `xml:"Path"`
	Roles []role `xml:"Roles>member"`
	Tags  []tag  `xml:"Tags>member"`
}

type role struct {
	Name string `xml:"RoleName"`
}

type tag struct {
	Key   string
	Value string
}

// MarshalXML writes the two elements that are named for the action.
func (a answer) MarshalXML(e *xml.Encoder, _ xml.StartElement) error {
	outer := xml.StartElement{
		Name: xml.Name{Local: a.action + "Response"},
		Attr: []xml.Attr{{Name: xml.Name{Local: "xmlns"}, Value: namespace}},
	}
	if err := e.EncodeToken(outer); err != nil {
		return err
	}
	var out result
	if a.profile != nil {
		out.Profile = shown(*a.profile)
	}
	if err := e.EncodeElement(out, xml.StartElement{Name: xml.Name{Local: a.action + "Result"}}); err != nil {
		return err
	}
	return e.EncodeToken(outer.End())
}

func shown(p cloud.Profile) *profile {
	out := &profile{Name: p.Name, Path: p.Path}
	if p.Role != "" {
		out.Roles = []role{{p.Role}}
	}
	for key, value := range p.Tags {
		out.Tags = append(out.Tags, tag{key, value})
	}
	return out
}
