package stack

import (
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// newScope returns the scope of a cluster's policies.
func newScope(p place, bucket string, k config.Cluster) rights.Scope {
	scope := rights.Scope{
		Partition: p.partition, Account: p.account, Region: p.region, Plan: k.Plan, Bucket: bucket, Prefix: k.Name,
		NodeRole: nodeRoleARN(p, k), Profiles: k.Node.Profiles == config.ByRole, ZonalShift: k.ZonalShift, RebootForRepair: k.RebootForRepair,
		NodeTags: k.Node.Tags, Parameters: k.Node.Parameters, Snapshots: k.Node.Snapshots, Replayers: k.Replayers,
	}
	if k.Node.WindowsRole != "" {
		scope.WindowsNodeRole = p.iamARN("role/" + k.Node.WindowsRole)
	}
	return scope
}

// trustPolicy returns the trust policy of a service's role.
func (p clusterStack) trustPolicy(service string) map[string]any {
	switch {
	case service == topology.Scheduler:
		return policyMap(p.rights.TrustScheduler())
	case p.functions != nil && slices.Contains(topology.ExternalServices, service):
		return policyMap(p.rights.TrustShared(service))
	case slices.Contains(topology.ExternalServices, service):
		return policyMap(rights.TrustFunction())
	case p.cluster.OIDCProvider != "":
		_, issuer, _ := strings.Cut(p.cluster.OIDCProvider, ":oidc-provider/")
		return policyMap(rights.TrustAccount(p.cluster.OIDCProvider, issuer, p.cluster.Namespace, serviceAccount(service)))
	}
	return policyMap(p.rights.TrustPod(p.cluster.Namespace, serviceAccount(service)))
}

// rolePolicies returns the policies of a service's role by name.
func (p clusterStack) rolePolicies(service string) map[string]map[string]any {
	document, err := p.rights.ServicePolicy(service)
	if err != nil {
		// New has validated the scope.
		panic(err)
	}
	all := map[string]map[string]any{"joist-" + service: policyMap(document)}
	if slices.Contains(topology.ExternalServices, service) && p.functions == nil {
		all["function"] = policyMap(p.rights.FunctionPolicy(service))
		if p.network != nil {
			all["network"] = policyMap(p.rights.NetworkPolicy(service))
		}
	}
	return all
}

// policyMap returns a document with single values instead of lists of one, the only form that
// cdk-nag supports.
func policyMap(document rights.Document) map[string]any {
	simple, _ := unwrapSingle(document.ToMap()).(map[string]any)
	// Statements stay a list.
	if _, list := simple["Statement"].([]any); !list {
		simple["Statement"] = []any{simple["Statement"]}
	}
	return simple
}

func unwrapSingle(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = unwrapSingle(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = unwrapSingle(inner)
		}
		if len(v) == 1 {
			return v[0]
		}
	}
	return value
}
