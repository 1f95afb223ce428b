package manifest

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func gvk(kind cluster.Kind) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
}

// setDefaults writes what the API server would fill in from the schemas of the
// custom resources. They matter: an expireAfter that is absent means 720h, and
// without the default it would read as Never.
func setDefaults(kind cluster.Kind, object map[string]any) {
	switch kind {
	case cluster.NodePools:
		spec := within(object, "spec")
		orElse(spec, "disruption", map[string]any{"consolidateAfter": "0s"})
		disruption := within(spec, "disruption")
		orElse(disruption, "consolidationPolicy", string(karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized))
		orElse(disruption, "budgets", []any{map[string]any{"nodes": "10%"}})
		orElse(within(within(spec, "template"), "spec"), "expireAfter", "720h")
	case cluster.NodeClaims:
		orElse(within(object, "spec"), "expireAfter", "720h")
	case cluster.NodeClasses:
		orElse(within(object, "spec"), "metadataOptions", map[string]any{})
		options := within(within(object, "spec"), "metadataOptions")
		orElse(options, "httpEndpoint", "enabled")
		orElse(options, "httpProtocolIPv6", "disabled")
		orElse(options, "httpPutResponseHopLimit", 1)
		orElse(options, "httpTokens", "required")
	}
}

// within is the mapping under a key, made when there is none.
func within(object map[string]any, key string) map[string]any {
	inner, ok := object[key].(map[string]any)
	if !ok {
		inner = map[string]any{}
		object[key] = inner
	}
	return inner
}

func orElse(object map[string]any, key string, value any) {
	if _, there := object[key]; !there {
		object[key] = value
	}
}
