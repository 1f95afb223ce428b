package live

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/joist-autoscaler/joist/services/cli/internal/kube"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Unread is a kind that could not be read.
type Unread struct {
	// Resource is the resource as RBAC and kubectl spell it, such as nodeclaims.karpenter.sh.
	Resource string `json:"resource"`
	// Reason is why it could not be read, and Consequence what that means for the result.
	Reason      string `json:"reason"`
	Consequence string `json:"consequence"`
	// Check is the command that checks the missing permission; "" if the cluster does not serve the
	// kind.
	Check string `json:"check,omitempty"`
}

// required are the kinds without which there is no result.
var required = []cluster.Kind{cluster.NodePools, cluster.Nodes, cluster.Pods}

// consequences are what it means that a kind could not be read.
var consequences = map[cluster.Kind]string{
	cluster.NodeClaims:             "no node is known to be managed, so none can be consolidated, and nodes that are being launched are unknown",
	cluster.NodeClasses:            "subnets, images and settings of new nodes are assumed: AL2023 in every zone of the region",
	cluster.Namespaces:             "namespaces have no labels: an affinity with a namespaceSelector selects no pod",
	cluster.DaemonSets:             "new nodes have no pods of DaemonSets: they hold fewer pods than planned",
	cluster.DisruptionBudgets:      "PodDisruptionBudgets are ignored: a node may be removed here that a budget keeps",
	cluster.VolumeClaims:           "pods with volume claims cannot be placed on another node, so their nodes are kept",
	cluster.Volumes:                "pods with bound volumes cannot be placed on another node, so their nodes are kept",
	cluster.StorageClasses:         "pods whose volumes do not exist yet cannot be placed",
	cluster.CSINodes:               "the number of volumes that a node can attach is unknown and not limited",
	cluster.VolumeAttachments:      "volumes that are still attached for deleted pods do not count",
	cluster.NodeOverlays:           "prices and capacities of NodeOverlays are ignored",
	cluster.CapacityBuffers:        "the capacity of CapacityBuffers is not reserved",
	cluster.PodTemplates:           "CapacityBuffers of PodTemplates are ignored",
	cluster.Deployments:            "CapacityBuffers of Deployments are ignored",
	cluster.StatefulSets:           "CapacityBuffers and default topology spread of StatefulSets are ignored",
	cluster.ReplicaSets:            "CapacityBuffers and default topology spread of ReplicaSets are ignored",
	cluster.Services:               "default topology spread is not added to pods of Services",
	cluster.ReplicationControllers: "default topology spread is not added to pods of ReplicationControllers",
	cluster.DeviceClasses:          "pods with ResourceClaims cannot be placed",
	cluster.ResourceSlices:         "pods with ResourceClaims cannot be placed on existing nodes",
	cluster.ResourceClaims:         "pods with ResourceClaims cannot be placed",
}

// isUnreadable reports whether an error concerns one kind: the caller may not list it, or the cluster
// does not serve it.
func isUnreadable(err error) bool {
	return fault.Is(err, fault.Denied, fault.Missing) && !apierrors.IsUnauthorized(err)
}

func newUnread(kind cluster.Kind, err error) Unread {
	out := Unread{Resource: resourceOf(kind), Reason: "the cluster does not serve " + kind.APIVersion() + " " + kind.Kind, Consequence: consequences[kind]}
	if fault.Is(err, fault.Denied) {
		out.Reason, out.Check = "you may not list it", checkCommand(kind)
	}
	return out
}

// resourceOf returns the resource as kubectl spells it.
func resourceOf(kind cluster.Kind) string {
	if kind.Group == "" {
		return kind.Resource
	}
	return kind.Resource + "." + kind.Group
}

// checkCommand returns the command that checks the permission to list a kind.
func checkCommand(kind cluster.Kind) string {
	if kind.Namespaced {
		return "kubectl auth can-i list " + resourceOf(kind) + " --all-namespaces"
	}
	return "kubectl auth can-i list " + resourceOf(kind)
}

// requireKinds returns an error if a required kind could not be read.
func requireKinds(kinds []cluster.Kind, problems []error) error {
	var denied, checks []string
	for _, kind := range required {
		switch err := problems[slices.Index(kinds, kind)]; {
		case fault.Is(err, fault.Missing):
			return fault.F("reading the cluster", fault.Invalid, "it does not serve NodePools of %s: neither Karpenter 1.x nor Joist is installed", kind.APIVersion()).
				WithHint("install Karpenter's CRDs (chart karpenter-crd, version 1.0 or later) or Joist's (chart joist-crd), or plan manifests with joist plan -f FILE")
		case err != nil:
			denied, checks = append(denied, resourceOf(kind)), append(checks, checkCommand(kind))
		}
	}
	if len(denied) == 0 {
		return nil
	}
	return fault.F("reading the cluster", fault.Denied, "you may not list %s, which every answer needs", strings.Join(denied, ", ")).
		WithHint(`a ClusterRole with the verb "list" on %s; check with %s`, strings.Join(denied, ", "), strings.Join(checks, " and "))
}

// describeFailure returns the error of a reading that failed as a whole.
func describeFailure(err error) error {
	if described := kube.DescribeFailure("reading the cluster", err); described != nil {
		return described
	}
	if fault.FindHint(err) != "" {
		return fmt.Errorf("reading the cluster: %w", err)
	}
	return fault.E("reading the cluster", fault.Retry, err).WithHint("check with kubectl get nodes that the API server answers")
}
