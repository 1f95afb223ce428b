package charts

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/helm"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joist-autoscaler/joist/shared/host/cardtest"
)

// rights are verbs by their object: a resource, its resourceNames, and the namespace, if
// there is one.
type rights map[string][]string

func (r rights) add(on string, verbs ...string) {
	r[on] = append(r[on], verbs...)
	slices.Sort(r[on])
	r[on] = slices.Compact(r[on])
}

// conditional are the values that grant further permissions, by the name in the README.
var conditional = map[string]string{
	"the gate `NodeOverlay`":               "settings.featureGates.nodeOverlay=true",
	"the gate `CapacityBuffer`":            "settings.featureGates.capacityBuffer=true",
	"the gate `PodDeletionCostManagement`": "settings.featureGates.podDeletionCostManagement=true",
	"`IGNORE_DRA_REQUESTS=false`":          "settings.ignoreDRARequests=false",
	"constraints in `SCHEDULER_CONFIG`":    "settings.schedulerConfig.podTopologySpread.defaultConstraints[0].maxSkew=1",
}

// Each service's README lists exactly the Kubernetes permissions of the chart, and each
// permission that it assigns to a feature gate is granted only with that gate.
func TestCardsListPermissions(t *testing.T) {
	for _, service := range []string{"watcher", "lifecycle"} {
		card := cardRights(t, service)
		for gate := range maps.Keys(card) {
			if gate != "" && conditional[gate] == "" {
				t.Errorf("the card of %s has permissions that are granted only with %s, which this test does not know", service, gate)
			}
		}
		without := chartRights(t, service)
		if diff := cmp.Diff(card[""], without); diff != "" {
			t.Errorf("the card of %s and the chart's rights differ (-card +chart):\n%s", service, diff)
		}
		for gate, value := range conditional {
			with := chartRights(t, service, value)
			for on, verbs := range with {
				if with[on] = slices.DeleteFunc(verbs, func(verb string) bool { return slices.Contains(without[on], verb) }); len(with[on]) == 0 {
					delete(with, on)
				}
			}
			if diff := cmp.Diff(card[gate], with, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the card of %s and the chart's rights with %s differ (-card +chart):\n%s", service, gate, diff)
			}
		}
	}
}

// namespaces are the READMEs' names of namespaces.
var namespaces = map[string]string{"joist": " of its namespace", "kube-system": " of Karpenter's namespace"}

// chartRights returns the permissions that a rendered chart grants to a service's
// account.
func chartRights(t *testing.T, service string, set ...string) rights {
	t.Helper()
	text, err := helm.Template(t.Context(), helm.Release{Name: "joist", Namespace: "joist", Chart: helm.Joist, Set: append(slices.Clone(needed), set...)})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := helm.Objects(text)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := helm.GrantsOf(objects, "joist-"+service)
	if err != nil {
		t.Fatal(err)
	}
	if len(bound) < 3 {
		t.Fatalf("%s is bound only to %v", service, bound)
	}
	out := rights{}
	for _, role := range bound {
		scope, known := namespaces[role.Namespace]
		if role.Namespace != "" && !known {
			t.Fatalf("%s is bound to role %s in namespace %s, which has no card entry", service, role.Role, role.Namespace)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, on := range named(resource, verb, rule.ResourceNames, scope) {
						out.add(on, verb)
					}
				}
			}
		}
	}
	return out
}

// named returns the objects of a verb in its scope. resourceNames cannot restrict create.
func named(resource, verb string, names []string, scope string) []string {
	if len(names) == 0 || verb == "create" {
		return []string{resource + scope}
	}
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = resource + " " + name + scope
	}
	return out
}

var (
	ofAWS    = regexp.MustCompile("`(s3|sqs):")
	withGate = regexp.MustCompile("^only with (.+)$")
	quoted   = regexp.MustCompile("`([^`]+)`")
)

// cardRights returns a README's permissions by their gate, from rows of the form "Kinds,
// Kinds `names`: verbs; their status: verbs; only with the gate `X`".
func cardRights(t *testing.T, service string) map[string]rights {
	t.Helper()
	_, section, err := cardtest.ReadSection(root, service, "Rights")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]rights{}
	for cell := range cardtest.TableRows(section, "right") {
		if ofAWS.MatchString(cell) {
			continue
		}
		gate, row, kinds, scope := "", rights{}, []string(nil), ""
		for part := range strings.SplitSeq(cell, "; ") {
			if found := withGate.FindStringSubmatch(part); found != nil {
				gate = found[1]
				continue
			}
			subject, verbs, ok := strings.Cut(part, ": ")
			if !ok {
				t.Fatalf("the card of %s has the permission %q, which the test cannot parse: write kinds, a colon, and verbs", service, part)
			}
			suffix := ""
			if subject == "their status" {
				suffix = "/status"
			} else {
				kinds, scope = kindsOf(subject)
			}
			for _, kind := range kinds {
				for verb := range strings.SplitSeq(verbs, ", ") {
					resource, name, _ := strings.Cut(kind, " ")
					var names []string
					if name != "" {
						names = []string{name}
					}
					for _, on := range named(resource+suffix, verb, names, scope) {
						row.add(on, verb)
					}
				}
			}
		}
		if out[gate] == nil {
			out[gate] = rights{}
		}
		for on, verbs := range row {
			out[gate].add(on, verbs...)
		}
	}
	return out
}

// kindsOf returns the resources of a subject with their names, and their scope: "Leases
// `a` and `b` of its namespace" yields "leases a" and "leases b".
func kindsOf(subject string) (kinds []string, scope string) {
	for _, of := range namespaces {
		if bare, found := strings.CutSuffix(subject, of); found {
			subject, scope = bare, of
		}
	}
	names := quoted.FindAllStringSubmatch(subject, -1)
	kind := strings.TrimSpace(quoted.ReplaceAllString(subject, ""))
	if len(names) == 1 && kind == "" {
		return []string{names[0][1]}, scope
	}
	if len(names) == 0 {
		return strings.Split(strings.ToLower(kind), ", "), scope
	}
	kind, _, _ = strings.Cut(strings.ToLower(kind), " ")
	if !strings.HasSuffix(kind, "s") {
		kind += "s"
	}
	for _, name := range names {
		kinds = append(kinds, kind+" "+name[1])
	}
	return kinds, scope
}
