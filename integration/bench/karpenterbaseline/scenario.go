package karpenterbaseline

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Scenario is the input in upstream's types.
type Scenario struct {
	Name              string
	InstanceTypesFile string
	InstanceTypes     []machine
	NodePools         []*karpv1.NodePool
	DaemonSetPods     []*corev1.Pod
	PodGroups         []podGroup
	Pods              []*corev1.Pod
	Nodes             []node
}

type podGroup struct {
	Count    int
	Template corev1.Pod
}

type machine struct {
	Name      string
	Arch      string
	OS        []string
	Capacity  corev1.ResourceList
	Overhead  corev1.ResourceList
	Labels    map[string]string
	Offerings []offering
}

type offering struct {
	Zone, ZoneID, CapacityType string
	// Price is in US dollars per hour.
	Price     float64
	Available bool
	// Reservation is the id of a reserved offering, and ReservationCapacity its free capacity.
	Reservation         string
	ReservationCapacity int
}

type node struct {
	Name, NodePool, InstanceType, Zone, CapacityType string

	Pods []*corev1.Pod
	// Kept is whether the node may not be disrupted, because its consolidateAfter has not elapsed for example.
	Kept bool
}

// Read decodes a scenario from a file, which may be gzipped, and its instance types from
// the file that it names in the same folder.
func Read(path string) (*Scenario, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the scenario: %w", err)
	}
	return Parse(text, func(name string) ([]byte, error) { return readFile(filepath.Join(filepath.Dir(path), name)) })
}

// Parse decodes a scenario. sibling reads the file that it names; it may be nil for a
// scenario with inline instance types.
func Parse(text []byte, beside func(name string) ([]byte, error)) (*Scenario, error) {
	s := &Scenario{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("decoding the scenario: %w", err)
	}
	if s.InstanceTypesFile != "" {
		types, err := beside(s.InstanceTypesFile)
		if err != nil {
			return nil, fmt.Errorf("reading the instance types of scenario %s: %w", s.Name, err)
		}
		if err := json.Unmarshal(types, &s.InstanceTypes); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", s.InstanceTypesFile, err)
		}
	}
	s.complete()
	return s, nil
}

// complete expands the groups and sets the API server's defaults.
func (s *Scenario) complete() {
	var pods []*corev1.Pod
	for _, g := range s.PodGroups {
		for i := range g.Count {
			pod := g.Template.DeepCopy()
			pod.Name = fmt.Sprintf("%s-%d", g.Template.Name, i)
			pods = append(pods, pod)
		}
	}
	s.Pods, s.PodGroups = append(pods, s.Pods...), nil
	for i, pod := range s.Pods {
		admit(pod, i)
		pod.Status.Phase = corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	}
	bound := len(s.Pods)
	for _, n := range s.Nodes {
		for _, pod := range n.Pods {
			admit(pod, bound)
			pod.Spec.NodeName = n.Name
			pod.Status.Phase = corev1.PodRunning
			bound++
		}
	}
	for _, pod := range s.DaemonSetPods {
		admit(pod, bound)
		bound++
	}
}

// admit sets the API server's defaults of the fields that scheduling reads.
func admit(pod *corev1.Pod, place int) {
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	pod.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", place))
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for name, limit := range list[i].Resources.Limits {
				if _, requested := list[i].Resources.Requests[name]; !requested {
					if list[i].Resources.Requests == nil {
						list[i].Resources.Requests = corev1.ResourceList{}
					}
					list[i].Resources.Requests[name] = limit
				}
			}
			for j := range list[i].Ports {
				if list[i].Ports[j].Protocol == "" {
					list[i].Ports[j].Protocol = corev1.ProtocolTCP
				}
			}
		}
	}
}

func readFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return text, err
	}
	from, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", path, err)
	}
	return io.ReadAll(from)
}
