package migrate

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// nodeGroup is what `aws eks describe-nodegroup` prints for a group that Cluster Autoscaler scales.
const nodeGroup = `{"nodegroup": {"nodegroupName": "general", "clusterName": "%s", "capacityType": "ON_DEMAND", "instanceTypes": ["t4g.xlarge"], "amiType": "AL2023_ARM_64_STANDARD",
 "nodeRole": "arn:aws:iam::123456789012:role/%s", "subnets": [%s], "scalingConfig": {"minSize": 1, "maxSize": 5, "desiredSize": 1}, "labels": {"team": "web"}, "diskSize": 20}}`

// TestMoveFromClusterAutoscaler follows the guide for Cluster Autoscaler: the group becomes a NodePool while Joist runs, Joist launches
// nodes for pods that the group would have had, and leaves the group's node alone.
func TestMoveFromClusterAutoscaler(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane and seven services")
	}
	t.Parallel()
	dir, err := testbed.BuildBinaries()
	if err != nil {
		t.Fatal(err)
	}
	w := newMovedCluster(t)
	w.RunPhase("Joist is installed next to a node group", func() { w.installBesideGroup(dir) })
	w.RunPhase("the node group becomes a NodePool, and Joist launches nodes of its type", w.replaceGroup)
	w.RunPhase("the end", w.Stop)
}

const groupNode = "ip-10-0-9-9.ec2.internal"

// installBesideGroup creates the group's node, cordoned as before its drain, and a Deployment with pods that need a new node.
func (w *movedCluster) installBesideGroup(dir string) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: groupNode, Labels: map[string]string{"eks.amazonaws.com/nodegroup": "general", "team": "web"}}}
	node.Spec.ProviderID, node.Spec.Unschedulable = "aws:///"+testbed.Region+"a/i-0group", true
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("58")}
	_, err := w.Kube.CoreV1().Nodes().Create(w.Context(), node, metav1.CreateOptions{})
	w.RequireNoError(err)
	w.Apply(manifests+"inflate.yaml", nil)
	w.StartJoist(dir, false)
	w.waitForHolder("Joist to hold Karpenter's Lease", func(holder string) bool { return holder != "" })
	w.scale(podsPerNode)
	if claims := w.Claims(); len(claims) > 0 {
		w.Errorf("without a NodePool there are NodeClaims: %v", claims)
	}
}

// replaceGroup converts the group with `joist convert`, and applies the result.
func (w *movedCluster) replaceGroup() {
	var subnets []string
	for _, subnet := range w.AWS.Subnets {
		subnets = append(subnets, `"`+subnet.ID+`"`)
	}
	folder := w.TempDir()
	group, pools := filepath.Join(folder, "general.json"), filepath.Join(folder, "pools.yaml")
	w.RequireNoError(os.WriteFile(group, fmt.Appendf(nil, nodeGroup, testbed.ClusterName, w.AWS.Role, strings.Join(subnets, ", ")), 0o600))
	var out, errs bytes.Buffer
	if code := cli.Run(context.Background(), cli.Env{Args: []string{"convert", "-f", group}, Stdout: &out, Stderr: &errs, Now: time.Now}); code != cli.ExitChanges {
		w.Fatalf("joist convert exits with %d: %s", code, errs.String())
	}
	w.Logf("joist convert:\n%s%s", out.String(), errs.String())
	w.RequireNoError(os.WriteFile(pools, out.Bytes(), 0o600))
	w.Apply(pools, nil)
	w.waitForPods(podsPerNode)
	for _, c := range w.Claims() {
		if c.Labels[corev1.LabelInstanceTypeStable] != "t4g.xlarge" || c.Labels["team"] != "web" || c.Labels[karpenter.CapacityTypeLabelKey] != karpenter.CapacityTypeOnDemand {
			w.Errorf("NodeClaim %s has the labels %v", c.Name, c.Labels)
		}
	}
	kept, err := w.Kube.CoreV1().Nodes().Get(w.Context(), groupNode, metav1.GetOptions{})
	w.RequireNoError(err)
	if kept.DeletionTimestamp != nil || testbed.IsDisrupted(kept) {
		w.Errorf("Joist changed the group's node: %v", kept.Spec.Taints)
	}
}
