package manifest

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func groupVersionKind(kind cluster.Kind) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
}

// setDefaults sets the defaults of the custom resources' schemas, as the API server does.
// Without them an absent expireAfter would mean Never instead of 720h.
func setDefaults(kind cluster.Kind, object map[string]any) {
	switch kind {
	case cluster.NodePools:
		spec := innerMapping(object, "spec")
		disruption := innerMapping(spec, "disruption")
		setDefault(disruption, "consolidateAfter", "0s")
		setDefault(disruption, "consolidationPolicy", string(karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized))
		setDefault(disruption, "budgets", []any{map[string]any{"nodes": "10%"}})
		setDefault(innerMapping(innerMapping(spec, "template"), "spec"), "expireAfter", "720h")
	case cluster.NodeClaims:
		setDefault(innerMapping(object, "spec"), "expireAfter", "720h")
	case cluster.NodeClasses:
		setDefault(innerMapping(object, "spec"), "metadataOptions", map[string]any{})
		options := innerMapping(innerMapping(object, "spec"), "metadataOptions")
		setDefault(options, "httpEndpoint", "enabled")
		setDefault(options, "httpProtocolIPv6", "disabled")
		setDefault(options, "httpPutResponseHopLimit", 1)
		setDefault(options, "httpTokens", "required")
	}
}

// innerMapping returns the mapping under the key, and adds it if it is missing.
func innerMapping(object map[string]any, key string) map[string]any {
	inner, ok := object[key].(map[string]any)
	if !ok {
		inner = map[string]any{}
		object[key] = inner
	}
	return inner
}

func setDefault(object map[string]any, key string, value any) {
	if _, there := object[key]; !there {
		object[key] = value
	}
}
