package versions

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// TextKind names a text that one version writes and another reads, such as "documents/plans".
type TextKind string

// The prefixes of the forms.
const (
	Messages    = "messages/"
	Documents   = "documents/"
	Annotations = "annotations/"
	ConfigMaps  = "configmaps/"
)

// forms are the Go types of the texts. The market of the catalog service is missing: only that service reads it, and
// it reads AWS again if it cannot.
var forms = func() map[TextKind]reflect.Type {
	out := map[TextKind]reflect.Type{
		Documents + event.IntentKind:   reflect.TypeFor[launchspec.Intent](),
		Documents + event.BatchKind:    reflect.TypeFor[planning.Batch](),
		Documents + event.SnapshotKind: reflect.TypeFor[planning.Snapshot](),
		// NodePart decodes itself.
		Documents + event.NodesKind: reflect.TypeFor[struct {
			Nodes []planning.Node `json:"nodes"`
		}](),
		Documents + event.PlanKind:      reflect.TypeFor[planning.Plan](),
		Documents + event.CatalogueKind: reflect.TypeFor[catalog.Catalogue](),
		Documents + event.InventoryKind: reflect.TypeFor[event.Inventory](),
		// The object that names the latest document of a kind.
		Documents + latest: reflect.TypeFor[event.Ref](),

		Annotations + planning.ProposalAnnotation:      reflect.TypeFor[planning.Proposal](),
		Annotations + planning.LaunchHistoryAnnotation: reflect.TypeFor[planning.LaunchHistory](),
		Annotations + budget.SpentAnnotation:           reflect.TypeFor[[]budget.Spent](),
		Annotations + launchspec.CeilingAnnotation:     reflect.TypeFor[corev1.ResourceList](),

		ConfigMaps + outbox.Name + "/outbox.json":                                      reflect.TypeFor[outbox.Outbox](),
		ConfigMaps + planning.UnavailableConfigMapName + "/" + planning.UnavailableKey: reflect.TypeFor[[]planning.Unavailable](),
	}
	for _, body := range []event.Body{
		event.PodsUnschedulable{}, event.ClusterSnapshot{}, event.NodeClassChanged{}, event.InventoryWanted{}, event.Tick{}, event.PlanMade{},
		event.DisruptionProposed{}, event.NodesKept{}, event.LaunchRequested{}, event.LaunchSettled{}, event.TagRequested{}, event.TerminateRequested{},
		event.RebootRequested{}, event.RebootSettled{},
		event.NodeClassEnsure{}, event.NodeClassEnsured{}, event.CatalogRefreshed{}, event.NodeClassResolved{}, event.InstancesListed{},
		event.NodeNoticed{}, event.InstanceGone{},
	} {
		out[Messages+TextKind(body.EventType())] = reflect.TypeOf(body)
	}
	return out
}()

// latest is the last part of the key of the object that names the latest document of a kind.
const latest = "latest"

// DocumentForm returns the form of the document with a key of the store.
func DocumentForm(key string) TextKind {
	kind, name, _ := strings.Cut(key, "/")
	if name == latest {
		kind = latest
	}
	return Documents + TextKind(kind)
}

// fieldsByType caches fieldsOf.
var fieldsByType sync.Map

// fieldsOf returns the types of a struct's fields by their names in JSON; nil for a type that is no struct, or that
// encodes itself.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, ok := fieldsByType.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	var out map[string]reflect.Type
	if t.Kind() == reflect.Struct && !encodesItself(t) {
		out = map[string]reflect.Type{}
		for field := range t.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case name == "-" || !field.IsExported() && !field.Anonymous:
			case name == "" && field.Anonymous:
				maps.Copy(out, fieldsOf(elementOf(field.Type)))
			case name == "":
				out[field.Name] = field.Type
			default:
				out[name] = field.Type
			}
		}
	}
	fieldsByType.Store(t, out)
	return out
}

// elementOf returns the type that a pointer refers to, and any other type as it is.
func elementOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// encodesItself reports whether the type has a JSON encoding of its own, so that its fields are not those of the text.
func encodesItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(reflect.TypeFor[json.Marshaler]()) || pointer.Implements(reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]())
}
