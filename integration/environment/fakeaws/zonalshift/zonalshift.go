// Package zonalshift implements GetManagedResource of Amazon Application Recovery
// Controller's REST protocol, on memcloud.
package zonalshift

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/awsjson"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
)

const path = "/managedresources/"

// Service answers the controller's calls from a model.
type Service struct {
	cloud *memcloud.Cloud
}

// New returns a service for the model. The controller manages a resource if its ARN is a
// cluster's.
func New(cloud *memcloud.Cloud) *Service { return &Service{cloud: cloud} }

// Match recognizes the operation by its path and by the service in the request's
// signature.
func (s *Service) Match(r *http.Request, _ []byte) bool {
	return r.Method == http.MethodGet && strings.HasPrefix(r.URL.EscapedPath(), path) &&
		strings.Contains(r.Header.Get("Authorization"), "/arc-zonal-shift/aws4_request")
}

type shift struct {
	Status  string `json:"appliedStatus"`
	From    string `json:"awayFrom"`
	Until   int64  `json:"expiryTime,omitempty"`
	Since   int64  `json:"startTime"`
	ID      string `json:"zonalShiftId,omitempty"`
	Comment string `json:"comment,omitempty"`
}

// ServeHTTP answers one call. In addition to active shifts it always returns an inactive
// practice run and an inactive autoshift.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arn, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), path))
	if err != nil || !strings.Contains(arn, ":cluster/") {
		awsjson.RefuseREST(w, &awsjson.Error{Shape: "ResourceNotFoundException", Message: "the resource " + arn + " is not managed", Status: http.StatusNotFound})
		return
	}
	found, err := s.cloud.ZonalShifts(context.WithoutCancel(r.Context()), arn)
	if err != nil {
		awsjson.RefuseREST(w, awsjson.Refusal(err))
		return
	}
	mine := []shift{{Status: "NOT_APPLIED", From: "idle-az1", Until: time.Now().Add(time.Hour).Unix(), ID: "practice", Comment: "run"}}
	theirs := []shift{{Status: "NOT_APPLIED", From: "idle-az2"}}
	for _, z := range found {
		if z.Until.IsZero() {
			theirs = append(theirs, shift{Status: "APPLIED", From: z.ZoneID})
		} else {
			mine = append(mine, shift{Status: "APPLIED", From: z.ZoneID, Until: z.Until.Unix(), ID: "mine", Comment: "started by a user"})
		}
	}
	awsjson.WriteREST(w, map[string]any{"arn": arn, "appliedWeights": map[string]float32{}, "zonalShifts": mine, "autoshifts": theirs})
}
