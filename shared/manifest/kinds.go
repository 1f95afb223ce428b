package manifest

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// Kinds that planning reads from manifests and from nowhere else: a cluster
// shows their pods instead.
var (
	Jobs     = cluster.Kind{Group: "batch", Version: "v1", Kind: "Job", Resource: "jobs", Namespaced: true, Status: true}
	CronJobs = cluster.Kind{Group: "batch", Version: "v1", Kind: "CronJob", Resource: "cronjobs", Namespaced: true, Status: true}
)

// known is every kind that Read decodes.
func known() []cluster.Kind {
	return append([]cluster.Kind{Jobs, CronJobs}, cluster.Kinds...)
}

// newObject makes an empty object of a known kind.
func newObject(kind cluster.Kind) cluster.Object {
	switch kind {
	case Jobs:
		return &batchv1.Job{}
	case CronJobs:
		return &batchv1.CronJob{}
	default:
		return kind.New()
	}
}

// legacy are the words of Karpenter before v1, and what they are called now.
var legacy = map[string]cluster.Kind{
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
}

// judge finds the kind of a document. what says what is wrong with it; with
// neither, the kind is one that planning does not read.
func judge(apiVersion, name string) (kind cluster.Kind, what string) {
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		group, version = "", apiVersion
	}
	for _, k := range known() {
		if k.Kind == name && k.Group == group && k.Version == version {
			return k, ""
		}
	}
	written := name + " of " + apiVersion
	if now, ok := legacy[group+"/"+name]; ok && version != now.Version {
		return cluster.Kind{}, written + " is no longer served: " + instead(now)
	}
	if near, ok := nearKind(group, name); ok {
		return cluster.Kind{}, written + " is no kind that exists: did you mean " + near.Kind + " of " + near.APIVersion() + "?"
	}
	return cluster.Kind{Group: group, Version: version, Kind: name}, ""
}

func instead(now cluster.Kind) string {
	text := "write " + now.Kind + " of " + now.APIVersion()
	if strings.HasPrefix(now.Group, "karpenter.") {
		text += " (a later release brings `joist convert`, which rewrites such files)"
	}
	return text
}

// nearKind finds what a misspelt kind was meant to be. A kind of somebody else's
// group is no misspelling, however near.
func nearKind(group, name string) (cluster.Kind, bool) {
	for _, k := range known() {
		sameGroup := k.Group == group
		if sameGroup && k.Kind == name {
			return k, true // of another version
		}
		if sameGroup && near(name, k.Kind) && !others[name] {
			return k, true
		}
		if k.Kind == name && (group == "" || k.Group == "") && !others[name] {
			return k, true // of the core group by mistake
		}
	}
	return cluster.Kind{}, false
}

// others exist and are near to one of ours by chance.
var others = map[string]bool{"Role": true}
