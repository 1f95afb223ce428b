// Package ec2 implements the part of EC2's query protocol that Joist calls, on memcloud.
//
// Pages are small on purpose, so that tests detect callers that read only the first page.
package ec2

import (
	"context"
	"encoding/xml"
	"errors"
	"net/http"
	"strconv"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
)

const (
	version   = "2016-11-15"
	namespace = "http://ec2.amazonaws.com/doc/2016-11-15/"
	// pageSize is the maximum number of items per page, also if MaxResults is larger.
	pageSize = 100
)

// Service answers EC2's calls from a model.
type Service struct {
	cloud *memcloud.Cloud
}

// New returns a service for the model.
func New(cloud *memcloud.Cloud) *Service { return &Service{cloud: cloud} }

// Match recognizes EC2 by its API version.
func (s *Service) Match(r *http.Request, body []byte) bool { return query.Is(r, body, version) }

// operations are the operations that Joist calls.
var operations = map[string]func(*Service, context.Context, query.Form) (any, error){
	"CreateFleet":             (*Service).createFleet,
	"RunInstances":            (*Service).runInstances,
	"CreateLaunchTemplate":    (*Service).createTemplate,
	"DescribeLaunchTemplates": (*Service).describeTemplates,
	"DeleteLaunchTemplate":    (*Service).deleteTemplate,
	"DescribeInstances":       (*Service).describeInstances,
	"DescribeInstanceStatus":  (*Service).describeStatus,
	"TerminateInstances":      (*Service).terminate,
	"RebootInstances":         (*Service).reboot,
	"CreateTags":              (*Service).createTags,
	"DescribeSubnets":         (*Service).describeSubnets,
	"DescribeSecurityGroups":  (*Service).describeGroups,
	"DescribeImages":          (*Service).describeImages,

	"DescribeInstanceTypes":         (*Service).describeTypes,
	"DescribeInstanceTypeOfferings": (*Service).describeOfferings,
	"DescribeAvailabilityZones":     (*Service).describeZones,
	"DescribeSpotPriceHistory":      (*Service).describeSpotPrices,

	"DescribeCapacityReservations": (*Service).describeReservations,
	"DescribePlacementGroups":      (*Service).describePlacementGroups,
}

// ServeHTTP answers one call.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	form, err := query.Read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	do := operations[form.Get("Action")]
	if do == nil {
		refuse(w, http.StatusNotImplemented, "InvalidAction", form.Get("Action")+" is not served by this fake")
		return
	}
	// A cancelled request does not undo what EC2 has started.
	var out any
	if err = countFilterValues(form); err == nil {
		out, err = do(s, context.WithoutCancel(r.Context()), form)
	}
	var missing refusal
	switch {
	case errors.Is(err, errWouldSucceed):
		refuse(w, http.StatusPreconditionFailed, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
	case errors.As(err, &missing):
		refuse(w, http.StatusBadRequest, missing.code, missing.message)
	case errors.Is(err, query.ErrUnserved):
		refuse(w, http.StatusBadRequest, "InvalidParameterValue", err.Error())
	case err != nil:
		code, message, status := query.Refusal(err)
		refuse(w, status, code, message)
	default:
		query.Write(w, http.StatusOK, answer{form.Get("Action"), out})
	}
}

// refusal is an error of EC2 that the model does not have.
type refusal struct{ code, message string }

func (r refusal) Error() string { return r.code + ": " + r.message }

// answer is an operation's response in its XML element.
type answer struct {
	action string
	body   any
}

// MarshalXML writes <ActionResponse> around the body's elements.
func (a answer) MarshalXML(e *xml.Encoder, _ xml.StartElement) error {
	return e.EncodeElement(a.body, xml.StartElement{
		Name: xml.Name{Local: a.action + "Response"},
		Attr: []xml.Attr{{Name: xml.Name{Local: "xmlns"}, Value: namespace}},
	})
}

type failure struct {
	XMLName xml.Name `xml:"Response"`
	Code    string   `xml:"Errors>Error>Code"`
	Message string   `xml:"Errors>Error>Message"`
	Request string   `xml:"RequestID"`
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	query.Write(w, status, failure{Code: code, Message: message, Request: requestID})
}

// requestID is the same in all responses, because no code reads it.
const requestID = "00000000-0000-0000-0000-000000000000"

// paged returns one page of a list; next is the token of the following page.
func paged[T any](form query.Form, all []T) (page []T, next string) {
	from, size := form.Int("NextToken"), pageSize
	if n := form.Int("MaxResults"); n > 0 && n < size {
		size = n
	}
	from = min(from, len(all))
	to := min(from+size, len(all))
	if to < len(all) {
		next = strconv.Itoa(to)
	}
	return all[from:to], next
}
