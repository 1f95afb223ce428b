package event

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// MinTTL is the shortest TTL of a message: a normal cold start or redelivery would exceed a shorter one.
const MinTTL = 2 * time.Minute

// Type is a message type and its major version: "launch.requested.v1".
type Type string

// The message types.
const (
	PodsUnschedulableType  Type = "pods.unschedulable.v1"
	ClusterSnapshotType    Type = "cluster.snapshot.v1"
	NodeClassChangedType   Type = "nodeclass.changed.v1"
	InventoryWantedType    Type = "inventory.wanted.v1"
	TickType               Type = "tick.v1"
	PlanMadeType           Type = "plan.made.v1"
	DisruptionProposedType Type = "disruption.proposed.v1"
	NodesKeptType          Type = "nodes.kept.v1"
	LaunchRequestedType    Type = "launch.requested.v1"
	LaunchSettledType      Type = "launch.settled.v1"
	TagRequestedType       Type = "tag.requested.v1"
	TerminateRequestedType Type = "terminate.requested.v1"
	RebootRequestedType    Type = "reboot.requested.v1"
	RebootSettledType      Type = "reboot.settled.v1"
	NodeClassEnsureType    Type = "nodeclass.ensure.v1"
	NodeClassEnsuredType   Type = "nodeclass.ensured.v1"
	CatalogRefreshedType   Type = "catalog.refreshed.v1"
	NodeClassResolvedType  Type = "nodeclass.resolved.v1"
	InstancesListedType    Type = "instances.listed.v1"
	NodeNoticedType        Type = "node.noticed.v1"
	InstanceGoneType       Type = "instance.gone.v1"
)

// Spec is the contract of a type: its producers, its consumers, its TTL and the maximum size of its data in bytes.
type Spec struct {
	Type      Type
	Producers []string
	Consumers []string
	TTL       time.Duration
	MaxData   int
}

// IsFact reports whether the type goes to the bus; the others are commands and go to their consumer's queue.
func (s Spec) IsFact() bool {
	return slices.Contains([]Type{
		PlanMadeType, DisruptionProposedType, NodesKeptType, LaunchSettledType, RebootSettledType, NodeClassEnsuredType, CatalogRefreshedType,
		NodeClassResolvedType, InstancesListedType, NodeNoticedType, InstanceGoneType,
	}, s.Type)
}

// AllowsSource reports whether a source is a producer of the type. The source "scheduler" has no prefix.
func (s Spec) AllowsSource(source string) bool {
	return slices.ContainsFunc(s.Producers, func(producer string) bool {
		return source == sourcePrefix+producer || producer == "scheduler" && source == producer
	})
}

const kib = 1 << 10

// Specs lists all types. The diagram, the docs and the bus's rules are generated from it.
var Specs = []Spec{
	{PodsUnschedulableType, []string{"watcher"}, []string{"planner"}, 5 * time.Minute, 4 * kib},
	{ClusterSnapshotType, []string{"watcher"}, []string{"disruption"}, 2 * time.Minute, 4 * kib},
	{NodeClassChangedType, []string{"watcher"}, []string{"catalog"}, 5 * time.Minute, 128 * kib},
	{InventoryWantedType, []string{"watcher"}, []string{"catalog"}, 2 * time.Minute, 4 * kib},
	{TickType, []string{"scheduler"}, []string{"catalog", "interruption", "launcher"}, 2 * time.Minute, 4 * kib},
	{PlanMadeType, []string{"planner"}, []string{"lifecycle"}, 5 * time.Minute, 16 * kib},
	{DisruptionProposedType, []string{"disruption"}, []string{"lifecycle"}, 2 * time.Minute, 64 * kib},
	{NodesKeptType, []string{"disruption"}, []string{"lifecycle"}, 2 * time.Minute, 192 * kib},
	{LaunchRequestedType, []string{"lifecycle"}, []string{"launcher"}, 2 * time.Minute, 4 * kib},
	{LaunchSettledType, []string{"launcher"}, []string{"lifecycle"}, 10 * time.Minute, 200 * kib},
	{TagRequestedType, []string{"lifecycle"}, []string{"launcher"}, 5 * time.Minute, 16 * kib},
	{TerminateRequestedType, []string{"lifecycle"}, []string{"launcher"}, 5 * time.Minute, 4 * kib},
	{RebootRequestedType, []string{"lifecycle"}, []string{"launcher"}, 2 * time.Minute, 4 * kib},
	{RebootSettledType, []string{"launcher"}, []string{"lifecycle"}, 10 * time.Minute, 16 * kib},
	{NodeClassEnsureType, []string{"lifecycle"}, []string{"launcher"}, 5 * time.Minute, 192 * kib},
	{NodeClassEnsuredType, []string{"launcher"}, []string{"lifecycle"}, 5 * time.Minute, 64 * kib},
	{CatalogRefreshedType, []string{"catalog"}, []string{"audit"}, 10 * time.Minute, 4 * kib},
	{NodeClassResolvedType, []string{"catalog"}, []string{"lifecycle"}, 5 * time.Minute, 128 * kib},
	{InstancesListedType, []string{"catalog"}, []string{"lifecycle"}, 5 * time.Minute, 4 * kib},
	{NodeNoticedType, []string{"interruption"}, []string{"lifecycle"}, 10 * time.Minute, 16 * kib},
	{InstanceGoneType, []string{"interruption"}, []string{"lifecycle"}, time.Hour, 4 * kib},
}

// Spec returns the type's Spec. A type of another major version, or without one, is Poison.
func (t Type) Spec() (Spec, error) {
	for i := range Specs {
		if Specs[i].Type == t {
			return Specs[i], nil
		}
	}
	name, major, ok := t.splitVersion()
	if !ok {
		return Spec{}, fault.F("reading the type", fault.Poison, "%q is not of the form name.vN", string(t))
	}
	for _, spec := range Specs {
		if known, ours, _ := spec.Type.splitVersion(); known == name {
			return Spec{}, fault.F("reading the type", fault.Poison, "%s has major version %d, and this service knows %d", name, major, ours).
				WithHint("upgrade the older of the two services, then replay the message")
		}
	}
	return Spec{}, fault.F("reading the type", fault.Poison, "%q is no message type of Joist", string(t))
}

// TTL returns how long a message of the type is valid after its creation; 0 for a type that is not in Specs.
func (t Type) TTL() time.Duration {
	spec, err := t.Spec()
	if err != nil {
		return 0
	}
	return spec.TTL
}

// splitVersion separates name and major version.
func (t Type) splitVersion() (name string, major int, ok bool) {
	cut := strings.LastIndex(string(t), ".v")
	if cut <= 0 {
		return "", 0, false
	}
	major, err := strconv.Atoi(string(t[cut+2:]))
	return string(t[:cut]), major, err == nil && major > 0
}
