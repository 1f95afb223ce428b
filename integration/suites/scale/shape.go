package scale

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Size is the size of a cluster. Its pods are distributed evenly over its nodes and its
// applications, each with its own pod template in one of 50 namespaces.
type Size struct{ Nodes, Pods, Apps int }

const spaces = 50

// Objects returns the number of objects of a kind, and a function that returns each.
func (s Size) Objects(kind cluster.Kind) (count int, shape func(i int) cluster.Object) {
	switch kind {
	case cluster.Pods:
		return s.Pods, func(i int) cluster.Object { return s.pod(i) }
	case cluster.Nodes:
		return s.Nodes, func(i int) cluster.Object { return node(i) }
	case cluster.NodeClaims:
		return s.Nodes, func(i int) cluster.Object { return claim(i) }
	case cluster.Namespaces:
		return spaces, func(i int) cluster.Object {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("team-", i), Labels: map[string]string{"team": strconv.Itoa(i)}}}
		}
	case cluster.DisruptionBudgets:
		return s.Apps, func(i int) cluster.Object { return budget(i) }
	case cluster.NodePools:
		return 1, func(int) cluster.Object {
			return nodePool()
		}
	default:
		return 0, nil
	}
}

func identity(prefix string, i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: fmt.Sprintf("%s-%d", prefix, i), UID: randomUID(prefix, i),
		ResourceVersion: strconv.Itoa(i + 1), CreationTimestamp: metav1.Unix(1_700_000_000+int64(i), 0),
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{}}}`)}},
	}
}

// randomUID returns a UID that looks random, as real ones do: sequential ones compress too well.
func randomUID(prefix string, i int) types.UID {
	sum := sha256.Sum256(fmt.Append(nil, prefix, i))
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

func nodeName(i int) string {
	return fmt.Sprintf("ip-10-%d-%d-1.eu-west-1.compute.internal", i/250, i%250)
}

func providerID(i int) string { return fmt.Sprintf("aws:///eu-west-1%c/i-%017x", 'a'+i%3, i) }

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// room returns a node's resources, including the number of pods.
func room(cpu, memory string) corev1.ResourceList {
	out := list(cpu, memory)
	out[corev1.ResourcePods] = resource.MustParse("234")
	return out
}

// pod returns a running pod of a Deployment with all usual fields.
func (s Size) pod(i int) *corev1.Pod {
	app := i % s.Apps
	p := &corev1.Pod{ObjectMeta: identity(fmt.Sprintf("app-%d-7d9f8c6b5", app), i)}
	p.Namespace, p.GenerateName = fmt.Sprint("team-", app%spaces), "app-7d9f8c6b5-"
	p.Labels = map[string]string{
		"app.kubernetes.io/name": fmt.Sprint("app-", app), "app.kubernetes.io/instance": "prod", "pod-template-hash": "7d9f8c6b5",
		"app.kubernetes.io/version": "1.2.3", "team": strconv.Itoa(app % spaces), "tier": "backend",
	}
	p.Annotations = map[string]string{"prometheus.io/scrape": "true", "checksum/config": fmt.Sprintf("%064d", app)}
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprintf("app-%d-7d9f8c6b5", app), UID: types.UID(fmt.Sprintf("%036d", app)), Controller: new(true),
	}}
	p.Spec = corev1.PodSpec{
		NodeName: nodeName(i % s.Nodes), ServiceAccountName: "app", SchedulerName: "default-scheduler", RestartPolicy: "Always", DNSPolicy: "ClusterFirst",
		TerminationGracePeriodSeconds: new(int64(30)), Priority: new(int32(0)), EnableServiceLinks: new(true),
		Tolerations: []corev1.Toleration{
			{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: new(int64(300))},
			{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: new(int64(300))},
		},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: "ScheduleAnyway",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": fmt.Sprint("app-", app)}},
		}},
		Volumes: []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}},
		}}}}},
		Containers: []corev1.Container{container("app", list(fmt.Sprint(100+app%10*50, "m"), "512Mi")), container("proxy", list("50m", "64Mi"))},
	}
	p.Status = status(0)
	return p
}

func container(name string, requests corev1.ResourceList) corev1.Container {
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}, PeriodSeconds: 10}
	return corev1.Container{
		Name: name, Image: "registry.example.com/team/" + name + ":1.2.3", Args: []string{"--listen=:8080", "--level=info"},
		Env:       []corev1.EnvVar{{Name: "REGION", Value: "eu-west-1"}, {Name: "STAGE", Value: "production"}, {Name: "LEVEL", Value: "info"}},
		Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}},
		Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}, LivenessProbe: probe, ReadinessProbe: probe,
		VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
	}
}

// status returns the status of a running pod whose container restarted the given number
// of times.
func status(restarts int32) corev1.PodStatus {
	out := corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "10.0.0.1", PodIP: "10.0.1.1", QOSClass: "Burstable", StartTime: new(metav1.Unix(1_700_000_000, 0))}
	for _, kind := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		out.Conditions = append(out.Conditions, corev1.PodCondition{Type: kind, Status: "True", LastTransitionTime: metav1.Unix(1_700_000_000, 0)})
	}
	for _, name := range []string{"app", "proxy"} {
		out.ContainerStatuses = append(out.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Ready: true, RestartCount: restarts, Image: "registry.example.com/team/" + name + ":1.2.3", ImageID: fmt.Sprintf("sha256:%064d", 1),
			ContainerID: fmt.Sprintf("containerd://%064d", restarts), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(1_700_000_000, 0)}},
		})
	}
	return out
}

func node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: identity("node", i)}
	n.Name = nodeName(i)
	n.Labels = map[string]string{
		corev1.LabelHostname: n.Name, corev1.LabelInstanceTypeStable: "m6i.4xlarge", corev1.LabelTopologyZone: fmt.Sprintf("eu-west-1%c", 'a'+i%3),
		corev1.LabelTopologyRegion: "eu-west-1", corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
		karpenter.NodePoolLabelKey: "default", karpenter.CapacityTypeLabelKey: karpenter.CapacityTypeSpot,
		karpenter.NodeRegisteredLabelKey: "true", karpenter.NodeInitializedLabelKey: "true",
	}
	n.Finalizers = []string{karpenter.TerminationFinalizer}
	n.Spec.ProviderID = providerID(i)
	n.Status.Capacity, n.Status.Allocatable = room("16", "64Gi"), room("15890m", "60Gi")
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: "True"}, {Type: corev1.NodeMemoryPressure, Status: "False"}}
	for image := range 20 {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/team/image-%d@sha256:%064d", image, i)}, SizeBytes: 1 << 27})
	}
	return n
}

// claim returns a NodeClaim at which lifecycle finds nothing to write.
func claim(i int) *karpenter.NodeClaim {
	c := &karpenter.NodeClaim{ObjectMeta: identity("claim", i)}
	c.Labels = map[string]string{
		karpenter.NodePoolLabelKey: "default", corev1.LabelInstanceTypeStable: "m6i.4xlarge", corev1.LabelTopologyZone: fmt.Sprintf("eu-west-1%c", 'a'+i%3),
		karpenter.CapacityTypeLabelKey: karpenter.CapacityTypeSpot,
	}
	c.Finalizers = []string{karpenter.TerminationFinalizer}
	c.Annotations = map[string]string{karpenter.InstanceTaggedAnnotationKey: "true"}
	c.Spec.Requirements = requirements()
	c.Status.ProviderID, c.Status.NodeName = providerID(i), nodeName(i)
	c.Status.Capacity, c.Status.Allocatable = room("16", "64Gi"), room("15890m", "60Gi")
	c.Status.LastPodEventTime = metav1.Unix(1_710_000_000, 0) // After all pods were created.
	for _, kind := range append(karpenter.NodeClaimReady(), karpenter.ConditionTypeConsistentStateFound) {
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind}, c.CreationTimestamp.Time)
	}
	c.Status.Conditions = c.Status.Conditions.WithReady(karpenter.NodeClaimReady(), 0, c.CreationTimestamp.Time)
	return c
}

// requirements are those of a planned NodeClaim: it lists the instance types that it may get.
func requirements() []karpenter.NodeSelectorRequirementWithMinValues {
	var kinds []string
	for _, family := range []string{"c6i", "c7i", "m6i", "m7i", "r6i", "r7i"} {
		for _, size := range []string{"2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge"} {
			kinds = append(kinds, family+"."+size)
		}
	}
	in := func(key string, values ...string) karpenter.NodeSelectorRequirementWithMinValues {
		return karpenter.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	return []karpenter.NodeSelectorRequirementWithMinValues{
		in(corev1.LabelInstanceTypeStable, kinds...), in(corev1.LabelTopologyZone, "eu-west-1a", "eu-west-1b", "eu-west-1c"),
		in(karpenter.CapacityTypeLabelKey, karpenter.CapacityTypeSpot), in(karpenter.NodePoolLabelKey, "default"),
	}
}

// nodePool returns a NodePool of which lifecycle only has to write the status.
func nodePool() *karpenter.NodePool {
	p := &karpenter.NodePool{ObjectMeta: identity("pool", 0)}
	p.Name = "default"
	hash, err := p.Hash()
	if err != nil {
		panic(fmt.Errorf("hashing a NodePool: %w", err)) // It has no field that cannot be hashed.
	}
	p.Annotations = map[string]string{karpenter.NodePoolHashAnnotationKey: hash, karpenter.NodePoolHashVersionAnnotationKey: karpenter.NodePoolHashVersion}
	return p
}

func budget(i int) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: identity("budget", i)}
	b.Namespace = fmt.Sprint("team-", i%spaces)
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": fmt.Sprint("app-", i)}}
	b.Spec.MaxUnavailable, b.Status.DisruptionsAllowed = new(intstr.FromInt32(1)), 1
	return b
}
