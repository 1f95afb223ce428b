package planvalidator_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// Every operator of a NodePool's requirements, with an existing label, a missing one, and
// one that is not a number.
func TestRequirementOperators(t *testing.T) {
	for _, c := range []struct {
		operator corev1.NodeSelectorOperator
		values   string
		// matches are the values that match; "-" is a missing label.
		matches string
	}{
		{"In", "4", "4"},
		{"In", "4,8", "4 8"},
		{"In", "x", "x"},
		{"In", "", ""},
		{"NotIn", "4", "- 3 5 8 x 04"},
		{"NotIn", "4,x", "- 3 5 8 04"},
		{"Exists", "", "3 4 5 8 x 04"},
		{"DoesNotExist", "", "-"},
		{"Gt", "4", "5 8"},
		{"Gt", "8", ""},
		{"Lt", "4", "3"},
		{"Lt", "0", ""},
		{"Gte", "4", "4 5 8 04"},
		{"Gte", "0", "3 4 5 8 04"},
		{"Lte", "4", "3 4 04"},
		{"Lte", "2", ""},
		{"Gte", "x", ""},
		{"Gt", "4,5", ""},
		{"Near", "4", ""},
	} {
		r := planvalidator.Requirement{Key: "k", Operator: c.operator}
		if c.values != "" {
			r.Values = strings.Split(c.values, ",")
		}
		var matches []string
		for value := range strings.FieldsSeq("- 3 4 5 8 x 04") {
			set := labels.Set{"k": value}
			if value == "-" {
				set = labels.Set{"other": "4"}
			}
			if r.Matches(set) {
				matches = append(matches, value)
			}
		}
		if strings.Join(matches, " ") != orderedLike("- 3 4 5 8 x 04", c.matches) {
			t.Errorf("%s %s is satisfied by %q, want %q", c.operator, c.values, matches, c.matches)
		}
	}
}

// orderedLike sorts words in the order of a list.
func orderedLike(list, words string) string {
	var out []string
	for one := range strings.FieldsSeq(list) {
		for word := range strings.FieldsSeq(words) {
			if one == word {
				out = append(out, one)
			}
		}
	}
	return strings.Join(out, " ")
}

// The same through a pool: which types it may launch. Several requirements on one label
// must all match.
func TestPoolRequirements(t *testing.T) {
	const cpu, gpus = "karpenter.k8s.aws/instance-cpu", "karpenter.k8s.aws/instance-gpu-count"
	for _, c := range []struct {
		name         string
		requirements []planvalidator.Requirement
		// launchable are the types that the pool may launch.
		launchable string
	}{
		{"none", nil, "small little large gpu"},
		{"In", []planvalidator.Requirement{require(cpu, "In", "2", "4")}, "small little"},
		{"NotIn", []planvalidator.Requirement{require(cpu, "NotIn", "2")}, "large gpu"},
		{"Exists", []planvalidator.Requirement{require(gpus, "Exists")}, "gpu"},
		{"DoesNotExist", []planvalidator.Requirement{require(gpus, "DoesNotExist")}, "small little large"},
		{"NotIn of a missing label", []planvalidator.Requirement{require(gpus, "NotIn", "1")}, "small little large"},
		{"Gt of a missing label", []planvalidator.Requirement{require(gpus, "Gt", "0")}, "gpu"},
		{"Gt", []planvalidator.Requirement{require(cpu, "Gt", "2")}, "large gpu"},
		{"Gte", []planvalidator.Requirement{require(cpu, "Gte", "2")}, "small little large gpu"},
		{"Lt", []planvalidator.Requirement{require(cpu, "Lt", "8")}, "small little"},
		{"Lte", []planvalidator.Requirement{require(cpu, "Lte", "8")}, "small little large gpu"},
		{"a range", []planvalidator.Requirement{require(cpu, "Gte", "3"), require(cpu, "Lte", "8"), require(gpus, "DoesNotExist")}, "large"},
		{"an empty range", []planvalidator.Requirement{require(cpu, "Gt", "2"), require(cpu, "Lt", "3")}, ""},
		{"a contradiction", []planvalidator.Requirement{require(zone, "In", "z1"), require(zone, "NotIn", "z1")}, ""},
		{"an old label", []planvalidator.Requirement{require(corev1.LabelInstanceType, "In", "large")}, "large"},
		{"a region", []planvalidator.Requirement{require(corev1.LabelTopologyRegion, "In", "elsewhere")}, ""},
		{"its own label", []planvalidator.Requirement{require("team", "Exists")}, "small little large gpu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := scenario(pod("a"))
			s.NodePools[0].Spec.Template.Spec.Requirements = c.requirements
			s = parsed(s)
			var launchable []string
			for _, name := range []string{"small", "little", "large", "gpu"} {
				if len(planvalidator.CheckPlan(s, planned(s, launch(name, "z1", "a")))) == 0 {
					launchable = append(launchable, name)
				}
			}
			if got := strings.Join(launchable, " "); got != c.launchable {
				t.Errorf("launches %q, want %q", got, c.launchable)
			}
		})
	}
}

// Labels with several values are chosen once for all pods of the node.
func TestOpenLabels(t *testing.T) {
	for _, c := range []struct {
		name        string
		requirement planvalidator.Requirement
		first       string
		second      string
		together    bool
	}{
		{"the same value", require("team", "In", "red", "green"), "red", "red", true},
		{"different values", require("team", "In", "red", "green"), "red", "green", false},
		{"a value that is not listed", require("team", "In", "red", "green"), "blue", "blue", false},
		{"any value", require("team", "Exists"), "blue", "blue", true},
		{"any value but one", require("team", "NotIn", "red"), "blue", "blue", true},
		{"the one", require("team", "NotIn", "red"), "red", "red", false},
		{"a number in range", require("team", "Gt", "4"), "5", "5", true},
		{"a number out of range", require("team", "Gt", "4"), "4", "4", false},
		{"no value", require("team", "DoesNotExist"), "red", "red", false},
	} {
		s := scenario(pod("a", selects("team", c.first)), pod("b", selects("team", c.second)))
		s.NodePools[0].Spec.Template.Spec.Requirements = []planvalidator.Requirement{c.requirement}
		s = parsed(s)
		if found := planvalidator.CheckPlan(s, planned(s, launch("large", "z1", "a", "b"))); (len(found) == 0) != c.together {
			t.Errorf("%s: violations %v, want none: %t", c.name, found, c.together)
		}
	}
}

// Startup taints are removed before pods are bound; other taints repel pods.
func TestStartupTaintsDoNotCount(t *testing.T) {
	for _, c := range []struct {
		field string
		valid bool
	}{{"startupTaints", true}, {"taints", false}} {
		s, err := planvalidator.ParseScenario([]byte(`{"nodePools": [{"metadata": {"name": "p"}, "spec": {"template": {"spec": {"requirements": [],
			"`+c.field+`": [{"key": "k", "effect": "NoSchedule"}]}}}}],
			"instanceTypes": [{"name": "m", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "2", "pods": "9"},
				"offerings": [{"zone": "z", "capacityType": "spot", "price": 1, "available": true}]}],
			"pods": [{"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}]}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		plan := planned(s, bought("spot", inPool("p", launch("m", "z", "a"))))
		plan.NewNodes[0].Price, plan.Summary.DollarsPerHour = 1, 1
		if found := planvalidator.CheckPlan(s, plan); (len(found) == 0) != c.valid {
			t.Errorf("%s: violations %v, want none: %t", c.field, found, c.valid)
		}
	}
}
