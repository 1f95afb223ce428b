// Package eks implements DescribeCluster of EKS's REST protocol on memcloud.
package eks

import (
	"context"
	"net/http"
	"strings"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/awsjson"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

const path = "/clusters/"

// Service answers EKS's calls from a model.
type Service struct {
	cloud *memcloud.Cloud
}

// New returns a service for the model.
func New(cloud *memcloud.Cloud) *Service { return &Service{cloud: cloud} }

// Match recognizes the operation by its path and by the service in the request's
// signature, because a bucket may be called clusters.
func (s *Service) Match(r *http.Request, _ []byte) bool {
	name, ok := strings.CutPrefix(r.URL.Path, path)
	return ok && r.Method == http.MethodGet && name != "" && !strings.Contains(name, "/") &&
		strings.Contains(r.Header.Get("Authorization"), "/eks/aws4_request")
}

type cluster struct {
	Name        string      `json:"name"`
	ARN         string      `json:"arn"`
	Endpoint    string      `json:"endpoint"`
	Version     string      `json:"version"`
	Status      string      `json:"status"`
	Certificate certificate `json:"certificateAuthority"`
	Network     network     `json:"kubernetesNetworkConfig"`
}

type certificate struct {
	Data string `json:"data"`
}

type network struct {
	ServiceIPv4 string `json:"serviceIpv4Cidr,omitempty"`
	ServiceIPv6 string `json:"serviceIpv6Cidr,omitempty"`
	Family      string `json:"ipFamily"`
}

// ServeHTTP answers one call.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, err := s.cloud.DescribeCluster(context.WithoutCancel(r.Context()), strings.TrimPrefix(r.URL.Path, path))
	if err != nil {
		refusal := awsjson.Refusal(err)
		if fault.Is(err, fault.Missing) {
			refusal.Status = http.StatusNotFound
		}
		awsjson.RefuseREST(w, refusal)
		return
	}
	out := cluster{
		Name: info.Name, ARN: info.ARN, Endpoint: info.Endpoint, Version: info.Version, Status: "ACTIVE",
		Certificate: certificate{info.CABundle}, Network: network{ServiceIPv4: info.ServiceCIDR, Family: "ipv4"},
	}
	if strings.Contains(info.ServiceCIDR, ":") {
		out.Network = network{ServiceIPv6: info.ServiceCIDR, Family: "ipv6"}
	}
	awsjson.WriteREST(w, map[string]cluster{"cluster": out})
}
