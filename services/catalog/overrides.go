package catalog

import (
	"cmp"
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// ClusterOverrides are the cluster facts from the settings. Empty fields override nothing.
type ClusterOverrides struct {
	Endpoint, CABundle, Version, ServiceCIDR string
	// NoEKS is set if EKS does not run the control plane. EKS is then never called.
	NoEKS bool
}

// applyTo returns info with the endpoint and the certificates from the settings, if set
// (Karpenter: pkg/operator/operator.go, ResolveClusterEndpoint and GetCABundle).
func (g ClusterOverrides) applyTo(info cloud.ClusterInfo) cloud.ClusterInfo {
	info.Endpoint, info.CABundle = cmp.Or(g.Endpoint, info.Endpoint), cmp.Or(g.CABundle, info.CABundle)
	return info
}

// clusterInfo returns the cluster facts without EKS. The error names the missing variables.
func (g ClusterOverrides) clusterInfo(name string) (cloud.ClusterInfo, error) {
	var missing []string
	for _, one := range [][2]string{{settings.Endpoint, g.Endpoint}, {settings.CABundle, g.CABundle}, {settings.Kubernetes, g.Version}} {
		if one[1] == "" {
			missing = append(missing, one[0])
		}
	}
	if len(missing) > 0 {
		return cloud.ClusterInfo{}, fault.F("describing cluster "+name, fault.Invalid, "%s is false, but %s not set", settings.ControlPlane, strings.Join(missing, ", ")).
			WithHint("set the missing variables of the catalog, or remove %s", settings.ControlPlane)
	}
	return cloud.ClusterInfo{Name: name, Endpoint: g.Endpoint, CABundle: g.CABundle, Version: g.Version, ServiceCIDR: g.ServiceCIDR}, nil
}
