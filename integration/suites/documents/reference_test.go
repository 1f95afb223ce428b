package documents

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// referenceSteps are those of a reference of fields. It has them one by one; the objects of testdata have them together.
var referenceSteps = []step{
	{globals, "the ConfigMaps karpenter-global-settings and config-logging", func(r *reader) {
		var files strings.Builder
		for n := 25; n <= 32; n++ {
			name := fmt.Sprintf("seed-004-%d.yaml", n)
			r.copyFile(manifests+name, name)
			files.WriteString(" -f " + name)
		}
		r.run("sed -i 's#https://.*#" + r.AWS.Cluster.Endpoint + "#' seed-004-27.yaml")
		r.runChanges("joist convert"+files.String()+" --values values.yaml > /dev/null", "Karpenter does not read it since 0.33", "loglevel.webhook removed: there is no webhook")
	}},
	{helmInstall, "the chart with these settings", func(r *reader) {
		r.install("karpenter")
		r.waitForDeployments()
		r.runShows("kubectl get deployment joist-watcher --namespace karpenter -o jsonpath='{.spec.template.spec.containers[0].env}'",
			`{"name":"BATCH_MAX_DURATION","value":"10s"}`, `{"name":"BATCH_IDLE_DURATION","value":"1s"}`, `{"name":"LOG_LEVEL","value":"debug"}`)
	}},
	{subnetTags, "a subnet and a security group with the tag Name", func(r *reader) {
		subnet := r.AWS.Subnets[0]
		r.Cloud.AddSubnet(cloud.Subnet{Zone: subnet.Zone, ZoneID: subnet.ZoneID, VPC: subnet.VPC, FreeIPs: 250, Tags: map[string]string{"Name": "foo-private-subnet"}})
		r.Cloud.AddSecurityGroup(cloud.SecurityGroup{Name: "foo", Tags: map[string]string{"Name": "foo-private-sg"}})
	}},
	{nodeClass, "tags of an EC2NodeClass that Karpenter sets itself", func(r *reader) {
		r.copyFile(manifests+"seed-004-10.yaml", "tags.yaml")
		r.runChanges("joist convert -f tags.yaml", "karpenter.sh/nodeclaim", "removed")
	}},
	{nodePool, "the fields of EC2NodeClass and NodePool", func(r *reader) {
		r.copyFile("testdata/reference.yaml", "reference.yaml")
		r.runFails("kubectl apply -f reference.yaml", `no matches for kind "EC2NodeClass" in version "karpenter.k8s.aws/v1beta1"`)
		r.applyReady("reference.yaml", "ec2nodeclass/foo-node-class nodepool/foo-nodepool")
		r.runShows("kubectl get nodepool foo-nodepool -o yaml", "consolidationPolicy: WhenEmptyOrUnderutilized", "expireAfter: 720h", "weight: 10", "consolidateAfter: 30s")
		r.runShows("kubectl get ec2nodeclass foo-node-class -o yaml", "podsPerCore: 2", "volumeSize: 100Gi")
	}},
	{keepPod, "karpenter.sh/do-not-disrupt: true, without quotes", func(r *reader) {
		r.copyFile("testdata/annotated.yaml", "annotated.yaml")
		r.runFails("kubectl apply -f annotated.yaml", "cannot unmarshal bool")
		r.run("joist convert -f annotated.yaml | kubectl apply -f -")
	}},
	{poolLimits, "limits of one CPU, which no instance type fits", func(r *reader) {
		var pod string
		r.WaitUntil(time.Minute, "the Event of a pod over the limits", func() bool {
			for _, p := range r.Pods("inflate") {
				pod = p.Name
			}
			out, _ := r.runLine("kubectl get events --field-selector reason=FailedScheduling,involvedObject.name=" + pod)
			return strings.Contains(out, "limits")
		})
		r.runShows("joist explain pod "+pod+" --store $STORE", "limits")
		r.run(`kubectl patch nodepool foo-nodepool --type merge -p '{"spec":{"limits":{"cpu":"1000","memory":"1024Gi"}}}'`)
	}},
	{scaleUp, "a node with the startup taint, which a person removes", func(r *reader) {
		r.WaitUntil(time.Minute, "a node", func() bool { return len(r.ManagedNodes()) == 1 && testbed.IsNodeReady(r.firstNode()) })
		r.runShows("kubectl get nodes -l karpenter.sh/nodepool=foo-nodepool -o jsonpath='{.items[*].spec.taints[*].key}'", "example.com/another-taint", "example.com/special-taint")
		r.run("kubectl taint nodes -l karpenter.sh/nodepool=foo-nodepool example.com/another-taint:NoSchedule-")
		r.WaitForPods("inflate", 1)
	}},
	{readNodes, "labels, annotations and tags", (*reader).checkReference},
	{change, "the startup taint is removed from the NodePool", func(r *reader) {
		const patch = `kubectl patch nodepool foo-nodepool --type merge -p '{"spec":{"template":{"spec":{"startupTaints":null}}}}'`
		old := r.firstNode().Name
		r.run(patch + " --dry-run=server -o yaml > changed.yaml")
		out, _ := r.runLine("joist simulate --pool-change changed.yaml")
		r.requireTexts("joist simulate", out, old, "drift")
		r.run(patch)
		r.run("kubectl wait --for=condition=Drifted nodeclaims --all" + readyTimeout)
		r.WaitUntil(time.Minute, "the annotation to keep the node, once its pod counts as started", func() bool {
			out, _ := r.runLine("joist explain node " + old)
			return strings.Contains(out, "do-not-disrupt")
		})
	}},
	{change, "the node is replaced once the pod lets it", func(r *reader) {
		old := r.firstNode().Name
		r.run(`kubectl patch deployment inflate --type merge -p '{"spec":{"template":{"metadata":{"annotations":null}}}}'`)
		r.WaitUntil(3*time.Minute, "the drifted node to be replaced", func() bool {
			return !slices.ContainsFunc(r.Nodes(), func(n *corev1.Node) bool { return n.Name == old })
		})
		r.WaitForPods("inflate", 1)
		r.WaitUntil(time.Minute, "the NodeClaim to be removed", func() bool { return len(r.Claims()) == len(r.RunningInstances()) })
		r.runShows("kubectl get events --all-namespaces --field-selector reason=DisruptionTerminating", "Drifted")
		r.RequireNoOrphans()
	}},
	{removal, "everything is removed", (*reader).removeAll},
}

// checkReference checks that the fields of the reference have reached the node and its instance.
func (r *reader) checkReference() {
	r.requireLabels(map[string]string{
		karpenter.NodePoolLabelKey: "foo-nodepool", "node.kubernetes.io/nodetype": "foo", karpenter.LabelInstanceFamily: "t3", karpenter.CapacityTypeLabelKey: "on-demand",
		"kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": r.AWS.Subnets[0].Zone,
	})
	node := r.firstNode()
	if node.Annotations["example.com/owner"] != "my-team" {
		r.Errorf("the node has the annotations %v", node.Annotations)
	}
	record, _ := r.Cloud.Record(testbed.InstanceID(node.Spec.ProviderID))
	want := map[string]string{"Env": "prd", "ManagedBy": "https://example.com/foo-karpenter.git", "Name": "bar-cluster-foo-karpenter", "karpenter.sh/discovery": "foo-cluster"}
	for _, kind := range []struct {
		name string
		tags map[string]string
	}{{"instance", record.Tags}, {"volume", record.Others["volume"]}} {
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if kind.tags[key] != want[key] {
				r.Errorf("the %s has the tag %s %q, want %q", kind.name, key, kind.tags[key], want[key])
			}
		}
	}
	// The test bed's nodes have the number of pods of their user data: maxPods is 20, and podsPerCore 2 on two cores is less.
	if pods := node.Status.Capacity.Pods().Value(); pods != 4 {
		r.Errorf("the node can run %d pods, want 4", pods)
	}
}
