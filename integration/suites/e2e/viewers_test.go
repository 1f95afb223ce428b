package e2e

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// checkViewers checks what eks-node-viewer and k9s read. eks-node-viewer reads Nodes, and the NodeClaims of
// karpenter.sh/v1 as Karpenter's own type: it draws an instance from its NodeClaim until the Node of the same provider ID
// exists (awslabs/eks-node-viewer: pkg/client/controller.go, pkg/model/node.go). k9s draws the columns that the CRDs define,
// as a Table of the API server.
func (w *e2eCluster) checkViewers() {
	w.Helper()
	claims := map[string]karpv1.NodeClaim{}
	raw, err := w.Kube.CoreV1().RESTClient().Get().AbsPath("/apis/karpenter.sh/v1/nodeclaims").DoRaw(w.Context())
	w.RequireNoError(err)
	var list karpv1.NodeClaimList
	w.RequireNoError(json.Unmarshal(raw, &list))
	for _, claim := range list.Items {
		claims[claim.Status.ProviderID] = claim
	}
	for _, node := range w.Nodes() {
		claim, ok := claims[node.Spec.ProviderID]
		if !ok {
			w.Errorf("eks-node-viewer would draw %s twice: no NodeClaim has its provider ID %q", node.Name, node.Spec.ProviderID)
			continue
		}
		if claim.Status.NodeName != node.Name || claim.CreationTimestamp.IsZero() {
			w.Errorf("NodeClaim %s has the node %q and the time %s, want %q", claim.Name, claim.Status.NodeName, claim.CreationTimestamp, node.Name)
		}
		for _, name := range []string{karpv1.CapacityTypeLabelKey, corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, karpv1.NodePoolLabelKey} {
			if claim.Labels[name] == "" || claim.Labels[name] != node.Labels[name] {
				w.Errorf("the label %s is %q on the NodeClaim and %q on the node %s", name, claim.Labels[name], node.Labels[name], node.Name)
			}
		}
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
			if q := claim.Status.Allocatable[name]; q.IsZero() {
				w.Errorf("NodeClaim %s has no allocatable %s", claim.Name, name)
			}
			if q := claim.Status.Capacity[name]; q.IsZero() {
				w.Errorf("NodeClaim %s has no capacity of %s", claim.Name, name)
			}
		}
	}
	w.checkColumns("nodeclaims", "Name", "Type", "Capacity", "Zone", "Node", "Ready", "Age")
	w.checkColumns("nodepools", "Name", "NodeClass", "Ready", "Age")
	w.Logf("checked what eks-node-viewer and k9s read of %d nodes and %d NodeClaims", len(w.Nodes()), len(claims))
}

// checkColumns checks the columns of a kind, and that each of its objects has a value in each.
func (w *e2eCluster) checkColumns(plural string, want ...string) {
	w.Helper()
	raw, err := w.Kube.CoreV1().RESTClient().Get().AbsPath("/apis/"+karpenter.Group+"/v1/"+plural).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(w.Context())
	w.RequireNoError(err)
	var table struct {
		ColumnDefinitions []struct{ Name string }
		Rows              []struct{ Cells []any }
	}
	w.RequireNoError(json.Unmarshal(raw, &table))
	at := map[string]int{}
	for i, column := range table.ColumnDefinitions {
		at[column.Name] = i
	}
	for _, name := range want {
		i, ok := at[name]
		if !ok {
			w.Errorf("%s have no column %s: %v", plural, name, table.ColumnDefinitions)
			continue
		}
		for _, row := range table.Rows {
			if row.Cells[i] == nil || row.Cells[i] == "" {
				w.Errorf("the column %s of %s is empty: %v", name, plural, row.Cells)
			}
		}
	}
	if len(table.Rows) == 0 {
		w.Errorf("there are no %s", plural)
	}
}
