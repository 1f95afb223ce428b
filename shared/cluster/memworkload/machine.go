package memworkload

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/launchspec/userdata"
)

// Machine has the resources of an instance type.
type Machine struct {
	Arch                  string // as Kubernetes spells it: amd64, arm64
	Capacity, Allocatable corev1.ResourceList
	// Devices are what the drivers on the node publish. Their pools get the node's name.
	Devices []catalog.DeviceTemplate
}

// Boot describes an instance that starts.
type Boot struct {
	InstanceID, ProviderID string
	Type                   string
	Zone                   string
	Region                 string // empty: the zone without its last character
	PrivateDNS             string // the node's name
	UserData               string // not in base64
}

// machine is an instance, also after its end.
type machine struct {
	boot    Boot
	spec    Machine
	joining userdata.Joining
	refusal error // why it never joins

	booted time.Time
	joined bool
	gone   time.Time
	// rebooted is when a reboot in progress began; zero without one. reboots counts them.
	rebooted time.Time
	reboots  int
}

// Boot starts an instance. It joins the cluster of its user data.
func (k *Kubernetes) Boot(now time.Time, boot Boot) {
	m := &machine{boot: boot, booted: now}
	m.refusal = k.prepare(m)
	k.machines[boot.InstanceID] = m
	k.wake(now)
}

// Gone ends an instance and with it the heartbeats of its kubelet.
func (k *Kubernetes) Gone(now time.Time, instanceID string) {
	if m, ok := k.machines[instanceID]; ok && m.gone.IsZero() {
		m.gone = now
		k.wake(now)
	}
}

// Reboot reboots an instance. Its node is not ready until it has booted again, with another boot ID. All other
// conditions of the node are cleared.
func (k *Kubernetes) Reboot(now time.Time, instanceID string) {
	if m, ok := k.machines[instanceID]; ok && m.gone.IsZero() {
		m.rebooted = now
		m.reboots++
		k.wake(now)
	}
}

// wake makes the next Step run a pass.
func (k *Kubernetes) wake(now time.Time) {
	if k.next.IsZero() || now.Before(k.next) {
		k.next = now
	}
}

// Refusal is an instance that cannot join, with the reason.
type Refusal struct {
	InstanceID string
	Err        error
}

// Refusals returns the instances that cannot join, by instance id.
func (k *Kubernetes) Refusals() []Refusal {
	var out []Refusal
	for _, id := range slices.Sorted(maps.Keys(k.machines)) {
		if err := k.machines[id].refusal; err != nil {
			out = append(out, Refusal{id, err})
		}
	}
	return out
}

// prepare reads the cluster to join from the user data.
func (k *Kubernetes) prepare(m *machine) (err error) {
	op := "booting instance " + m.boot.InstanceID
	if m.joining, err = userdata.Parse(m.boot.UserData); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	if want := k.options.ClusterName; want != "" && m.joining.ClusterName != want {
		return fault.F(op, fault.Invalid, "the user data joins cluster %q, not %q", m.joining.ClusterName, want)
	}
	if m.boot.PrivateDNS == "" {
		return fault.F(op, fault.Invalid, "the instance has no private DNS name, so the node has no name")
	}
	known := false
	if k.options.Machine != nil {
		m.spec, known = k.options.Machine(m.boot.Type)
	}
	if !known {
		return fault.F(op, fault.Invalid, "unknown instance type %q", m.boot.Type)
	}
	return nil
}

// joinMachines registers the Nodes of instances that are due.
func (k *Kubernetes) joinMachines(ctx context.Context) error {
	names := map[string]bool{}
	for _, node := range k.nodes {
		names[node.Name] = true
	}
	for _, id := range slices.Sorted(maps.Keys(k.machines)) {
		m := k.machines[id]
		if m.joined || m.refusal != nil || !m.gone.IsZero() || !k.isDue(m.booted.Add(k.options.JoinAfter)) || names[m.boot.PrivateDNS] {
			continue
		}
		if err := k.createObject(ctx, "kubelet", m.node(k.apiTime())); err != nil {
			return err
		}
		m.joined = true
		names[m.boot.PrivateDNS] = true
	}
	return nil
}

// node returns the Node that the machine's kubelet registers, by its user data and
// instance. It is not Ready.
func (m *machine) node(now metav1.Time) *corev1.Node {
	region := m.boot.Region
	if region == "" && m.boot.Zone != "" {
		region = m.boot.Zone[:len(m.boot.Zone)-1]
	}
	labels := map[string]string{
		corev1.LabelHostname:           m.boot.PrivateDNS,
		corev1.LabelOSStable:           "linux",
		corev1.LabelArchStable:         cmp.Or(m.spec.Arch, "amd64"),
		corev1.LabelInstanceTypeStable: m.boot.Type,
		corev1.LabelTopologyZone:       m.boot.Zone,
		corev1.LabelTopologyRegion:     region,
	}
	maps.Copy(labels, m.joining.Labels)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.boot.PrivateDNS, Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: m.boot.ProviderID, Taints: slices.Clone(m.joining.Taints)},
		Status: corev1.NodeStatus{
			Capacity: m.spec.Capacity.DeepCopy(), Allocatable: m.spec.Allocatable.DeepCopy(),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalDNS, Address: m.boot.PrivateDNS}, {Type: corev1.NodeHostName, Address: m.boot.PrivateDNS},
			},
			NodeInfo: corev1.NodeSystemInfo{Architecture: labels[corev1.LabelArchStable], OperatingSystem: "linux"},
		},
	}
	if m.joining.MaxPods > 0 {
		pods := apiresource.MustParse(strconv.Itoa(m.joining.MaxPods))
		setResource(&node.Status.Capacity, corev1.ResourcePods, pods)
		setResource(&node.Status.Allocatable, corev1.ResourcePods, pods)
	}
	setReadyCondition(node, corev1.ConditionFalse, "KubeletNotReady", now)
	addTaint(node, corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule, now)
	return node
}

func setResource(list *corev1.ResourceList, name corev1.ResourceName, amount apiresource.Quantity) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = amount
}
