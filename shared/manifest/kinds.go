package manifest

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// Kinds that planning reads from manifests only. In a cluster it reads their pods, or their claims.
var (
	Jobs     = cluster.Kind{Group: "batch", Version: "v1", Kind: "Job", Resource: "jobs", Namespaced: true, Status: true}
	CronJobs = cluster.Kind{Group: "batch", Version: "v1", Kind: "CronJob", Resource: "cronjobs", Namespaced: true, Status: true}

	ResourceClaimTemplates = cluster.Kind{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaimTemplate", Resource: "resourceclaimtemplates", Namespaced: true}
)

// knownKinds returns every kind that Read decodes.
func knownKinds() []cluster.Kind {
	return append([]cluster.Kind{Jobs, CronJobs, ResourceClaimTemplates}, cluster.Kinds...)
}

// newObject returns an empty object of a known kind.
func newObject(kind cluster.Kind) cluster.Object {
	switch kind {
	case Jobs:
		return &batchv1.Job{}
	case CronJobs:
		return &batchv1.CronJob{}
	case ResourceClaimTemplates:
		return &resourcev1.ResourceClaimTemplate{}
	default:
		return kind.New()
	}
}

// oldKinds maps kinds that are no longer served to their current kinds.
var oldKinds = map[string]cluster.Kind{
	"karpenter.sh/Provisioner":          cluster.NodePools,
	"karpenter.sh/Machine":              cluster.NodeClaims,
	"karpenter.sh/NodePool":             cluster.NodePools,
	"karpenter.sh/NodeClaim":            cluster.NodeClaims,
	"karpenter.k8s.aws/AWSNodeTemplate": cluster.NodeClasses,
	"karpenter.k8s.aws/EC2NodeClass":    cluster.NodeClasses,
	"compute.k8s.aws/EC2NodeClass":      cluster.NodeClasses,
	"karpenter.k8s.aws/NodeClass":       cluster.NodeClasses,
	"karpenter.k8s.aws/AWSNodeClass":    cluster.NodeClasses,
	"extensions/Deployment":             cluster.Deployments,
	"extensions/DaemonSet":              cluster.DaemonSets,
	"apps/Deployment":                   cluster.Deployments,
	"apps/StatefulSet":                  cluster.StatefulSets,
	"apps/DaemonSet":                    cluster.DaemonSets,
	"batch/CronJob":                     CronJobs,
	"policy/PodDisruptionBudget":        cluster.DisruptionBudgets,
	"scheduling.k8s.io/PriorityClass":   cluster.PriorityClasses,
	"storage.k8s.io/StorageClass":       cluster.StorageClasses,
	"resource.k8s.io/DeviceClass":       cluster.DeviceClasses,
	"resource.k8s.io/ResourceSlice":     cluster.ResourceSlices,
	"resource.k8s.io/ResourceClaim":     cluster.ResourceClaims,

	"resource.k8s.io/ResourceClaimTemplate": ResourceClaimTemplates,
}

// findKind returns the kind of a document, or the problem with it. A kind that planning
// does not read has no Resource.
func findKind(apiVersion, name string) (kind cluster.Kind, problem string) {
	group, version := cutVersion(apiVersion)
	for _, k := range knownKinds() {
		if k.Kind == name && k.Group == group && k.Version == version {
			return k, ""
		}
	}
	written := name + " of " + apiVersion
	if now, ok := oldKinds[group+"/"+name]; ok && version != now.Version {
		return cluster.Kind{}, written + " is no longer served: " + replacementText(now)
	}
	if near, ok := similarKind(group, name); ok {
		return cluster.Kind{}, written + " does not exist: did you mean " + near.Kind + " of " + near.APIVersion() + "?"
	}
	return cluster.Kind{Group: group, Version: version, Kind: name}, ""
}

func cutVersion(apiVersion string) (group, version string) {
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		return "", apiVersion
	}
	return group, version
}

func replacementText(now cluster.Kind) string {
	text := "write " + now.Kind + " of " + now.APIVersion()
	if strings.HasPrefix(now.Group, "karpenter.") {
		text += "; `joist convert -f FILE` does so"
	}
	return text
}

// similarKind returns the kind that a misspelt kind resembles. Kinds of other groups are not
// misspellings.
func similarKind(group, name string) (cluster.Kind, bool) {
	for _, k := range knownKinds() {
		sameGroup := k.Group == group
		if sameGroup && k.Kind == name {
			return k, true // of another version
		}
		if sameGroup && isSimilar(name, k.Kind) && !unrelatedKinds[name] {
			return k, true
		}
		if k.Kind == name && (group == "" || k.Group == "") && !unrelatedKinds[name] {
			return k, true // of the core group by mistake
		}
	}
	return cluster.Kind{}, false
}

// unrelatedKinds are existing kinds that resemble a known kind by chance.
var unrelatedKinds = map[string]bool{"Role": true}
