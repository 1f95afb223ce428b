package catalog

import (
	"cmp"
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// Given is how nodes join the cluster, as far as the settings say it.
type Given struct {
	Endpoint, CABundle, Version, ServiceCIDR string
	// NoEKS says that EKS does not know the cluster and is never called.
	NoEKS bool
}

// over puts the endpoint and the certificates over what EKS names
// (Karpenter: pkg/operator/operator.go, ResolveClusterEndpoint and GetCABundle).
func (g Given) over(info cloud.ClusterInfo) cloud.ClusterInfo {
	info.Endpoint, info.CABundle = cmp.Or(g.Endpoint, info.Endpoint), cmp.Or(g.CABundle, info.CABundle)
	return info
}

// whole is the cluster without EKS. An error names the variables that are missing.
func (g Given) whole(name string) (cloud.ClusterInfo, error) {
	var missing []string
	for _, one := range [][2]string{{settings.Endpoint, g.Endpoint}, {settings.CABundle, g.CABundle}, {settings.Kubernetes, g.Version}} {
		if one[1] == "" {
			missing = append(missing, one[0])
		}
	}
	if len(missing) > 0 {
		return cloud.ClusterInfo{}, fault.F("describing cluster "+name, fault.Invalid, "%s is false, and %s not set", settings.ControlPlane, strings.Join(missing, ", ")).
			WithHint("set the missing variables of the catalog, or remove %s", settings.ControlPlane)
	}
	return cloud.ClusterInfo{Name: name, Endpoint: g.Endpoint, CABundle: g.CABundle, Version: g.Version, ServiceCIDR: g.ServiceCIDR}, nil
}
