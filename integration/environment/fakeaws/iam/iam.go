// Package iam implements IAM's query protocol for instance profiles, on memcloud.
package iam

import (
	"context"
	"encoding/xml"
	"net/http"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
)

const (
	version   = "2010-05-08"
	namespace = "https://iam.amazonaws.com/doc/2010-05-08/"
)

// Service answers IAM's calls from a model.
type Service struct {
	cloud *memcloud.Cloud
}

// New returns a service for the model.
func New(cloud *memcloud.Cloud) *Service { return &Service{cloud: cloud} }

// Match recognizes IAM by its API version.
func (s *Service) Match(r *http.Request, body []byte) bool { return query.Is(r, body, version) }

// ServeHTTP answers one call.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	form, err := query.Read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx := context.WithoutCancel(r.Context())
	var out result
	if form.Get("Action") == "ListInstanceProfiles" {
		err = s.list(ctx, form, &out)
	} else {
		out.Profile, err = s.do(ctx, form)
	}
	if err != nil {
		code, message, status := query.Refusal(err)
		if code == "NoSuchEntity" {
			status = http.StatusNotFound
		}
		query.Refuse(w, namespace, status, code, message)
		return
	}
	query.Write(w, http.StatusOK, answer{form.Get("Action"), out})
}

// list answers ListInstanceProfiles with one profile per page.
func (s *Service) list(ctx context.Context, form query.Form, out *result) error {
	found, err := s.cloud.ListProfiles(ctx, form.Get("PathPrefix"))
	if err != nil {
		return err
	}
	out.Profiles = &[]*profile{}
	if at := form.Int("Marker"); at < len(found) {
		*out.Profiles = append(*out.Profiles, shown(found[at]))
		if out.Truncated = at+1 < len(found); out.Truncated {
			out.Marker = strconv.Itoa(at + 1)
		}
	}
	return nil
}

// do runs one operation; it returns a profile if the operation does.
func (s *Service) do(ctx context.Context, form query.Form) (*profile, error) {
	name, role := form.Get("InstanceProfileName"), form.Get("RoleName")
	switch form.Get("Action") {
	case "GetInstanceProfile":
		p, err := s.cloud.Profile(ctx, name)
		return shown(p), err
	case "CreateInstanceProfile":
		p := cloud.Profile{Name: name, Path: form.Get("Path"), Tags: form.Tags("Tags.member")}
		return shown(p), s.cloud.CreateProfile(ctx, p)
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

// answer is <ActionResponse><ActionResult>, IAM's nesting.
type answer struct {
	action string
	result result
}

type result struct {
	Profile   *profile    `xml:"InstanceProfile"`
	Profiles  *[]*profile `xml:"InstanceProfiles>member"`
	Truncated bool        `xml:"IsTruncated,omitempty"`
	Marker    string      `xml:"Marker,omitempty"`
}

type profile struct {
	Name string `xml:"InstanceProfileName"`
	Path string `xml:"Path"`
	// Created has the format of ISO 8601.
	Created string `xml:"CreateDate,omitempty"`
	Roles   []role `xml:"Roles>member"`
	Tags    []tag  `xml:"Tags>member"`
}

type role struct {
	Name string `xml:"RoleName"`
}

type tag struct {
	Key   string
	Value string
}

// MarshalXML writes the two elements that contain the action's name.
func (a answer) MarshalXML(e *xml.Encoder, _ xml.StartElement) error {
	outer := xml.StartElement{
		Name: xml.Name{Local: a.action + "Response"},
		Attr: []xml.Attr{{Name: xml.Name{Local: "xmlns"}, Value: namespace}},
	}
	if err := e.EncodeToken(outer); err != nil {
		return err
	}
	if err := e.EncodeElement(a.result, xml.StartElement{Name: xml.Name{Local: a.action + "Result"}}); err != nil {
		return err
	}
	return e.EncodeToken(outer.End())
}

func shown(p cloud.Profile) *profile {
	out := &profile{Name: p.Name, Path: p.Path}
	if !p.Created.IsZero() {
		out.Created = p.Created.UTC().Format(time.RFC3339)
	}
	if p.Role != "" {
		out.Roles = []role{{p.Role}}
	}
	for key, value := range p.Tags {
		out.Tags = append(out.Tags, tag{key, value})
	}
	return out
}
