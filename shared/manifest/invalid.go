package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// inspection collects what the API server would refuse about one object.
type inspection struct {
	Document
	problems []Problem
}

func (in *inspection) report(path, format string, args ...any) {
	in.problems = append(in.problems, Problem{in.At(path), path, fmt.Sprintf(format, args...)})
}

// oneOf reports a word that is not on the list; hint may explain some.
func (in *inspection) oneOf(path, word string, words []string, hints map[string]string) {
	if slices.Contains(words, word) {
		return
	}
	hint := hints[word]
	if best := nearest(word, words); hint == "" && best != "" {
		hint = fmt.Sprintf(", did you mean %q?", best)
	}
	if hint == "" {
		hint = ": write one of " + strings.Join(words, ", ")
	}
	in.report(path, "%s is none of its values%s", quoted(clip(word)), hint)
}

// invalid lists what the schema and its rules refuse, as far as people get it
// wrong; the complete rules are in the custom resources' manifests.
func invalid(d Document) []Problem {
	in := inspection{Document: d}
	if d.Object.GetName() == "" && d.Object.GetGenerateName() == "" {
		in.report("metadata.name", "missing: an object needs a name")
	}
	switch object := d.Object.(type) {
	case *karpenter.NodePool:
		in.nodePool(object)
	case *karpenter.EC2NodeClass:
		in.nodeClass(object)
	}
	return in.problems
}

func (in *inspection) nodePool(p *karpenter.NodePool) {
	template := &p.Spec.Template
	in.reference(template.Spec.NodeClassRef)
	if !in.has("spec.template.spec.requirements") {
		in.report("spec.template.spec.requirements", "missing: write the requirements, or [] for none")
	}
	for i, r := range template.Spec.Requirements {
		in.requirement(fmt.Sprintf("spec.template.spec.requirements[%d]", i), r)
	}
	for key := range template.Labels {
		if err := karpenter.ValidateTemplateLabel(key); err != nil {
			in.report(join("spec.template.metadata.labels", key), "%v", err)
		}
	}
	in.disruption(&p.Spec.Disruption)
	if p.Spec.Weight != nil && (*p.Spec.Weight < 1 || *p.Spec.Weight > 100) {
		in.report("spec.weight", "%d is not between 1 and 100: leave it out for the lowest weight", *p.Spec.Weight)
	}
	if p.Static() && p.Spec.Weight != nil {
		in.report("spec.weight", "a pool with replicas has no weight: take one of the two out")
	}
}

// has says whether a field is written, even if as null.
func (in *inspection) has(path string) bool {
	_, ok := in.places[path]
	return ok
}

// reference checks the node class; pools from before v1 gave its name alone.
func (in *inspection) reference(ref *karpenter.NodeClassReference) {
	const path = "spec.template.spec.nodeClassRef"
	if ref == nil {
		in.report(path, "missing: write {group: %s, kind: EC2NodeClass, name: …}", karpenter.AWSGroup)
		return
	}
	for _, f := range []struct{ name, value, write string }{
		{"group", ref.Group, karpenter.AWSGroup}, {"kind", ref.Kind, "EC2NodeClass"}, {"name", ref.Name, "the name of your EC2NodeClass"},
	} {
		if f.value == "" {
			in.report(path+"."+f.name, "missing: write %s", f.write)
		}
	}
}

func (in *inspection) requirement(path string, r karpenter.NodeSelectorRequirementWithMinValues) {
	if r.Key == "" {
		in.report(path+".key", "missing: name a label")
	} else if err := karpenter.ValidateTemplateLabel(r.Key); err != nil {
		if best := nearest(r.Key, karpenter.WellKnownLabels()); best != "" && best != r.Key {
			in.report(path+".key", "%s is no label that exists, did you mean %q?", quoted(clip(r.Key)), best)
		} else {
			in.report(path+".key", "%v", err)
		}
	}
	in.oneOf(path+".operator", string(r.Operator), []string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"}, nil)
	switch r.Operator {
	case karpenter.NodeSelectorOpIn:
		if len(r.Values) == 0 {
			in.report(path+".values", "missing: In needs at least one value")
		}
	case karpenter.NodeSelectorOpGt, karpenter.NodeSelectorOpLt, karpenter.NodeSelectorOpGte, karpenter.NodeSelectorOpLte:
		if len(r.Values) != 1 || !wholeNumber(r.Values[0]) {
			in.report(path+".values", "%s needs one whole number in quotes, such as [\"4\"]", r.Operator)
		}
	}
	in.minValues(path+".minValues", r)
}

func (in *inspection) minValues(path string, r karpenter.NodeSelectorRequirementWithMinValues) {
	switch least := r.MinValues; {
	case least == nil:
	case *least < 1 || *least > karpenter.MinValuesMax:
		in.report(path, "%d is not between 1 and %d", *least, karpenter.MinValuesMax)
	case r.Operator == karpenter.NodeSelectorOpIn && len(r.Values) < *least:
		in.report(path, "%d values are asked for and only %d are listed", *least, len(r.Values))
	}
}

func wholeNumber(text string) bool {
	return text != "" && len(text) < 19 && strings.Trim(text, "0123456789") == ""
}

func (in *inspection) disruption(d *karpenter.Disruption) {
	const path = "spec.disruption"
	if in.has(path) && !in.has(path+".consolidateAfter") {
		in.report(path+".consolidateAfter", "missing: write a duration such as 0s or 1m, or Never")
	}
	in.oneOf(path+".consolidationPolicy", string(d.ConsolidationPolicy),
		[]string{"WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"},
		map[string]string{"WhenUnderutilized": `: it is WhenEmptyOrUnderutilized since v1`})
	for i, b := range d.Budgets {
		at := fmt.Sprintf("%s.budgets[%d]", path, i)
		if (b.Schedule == nil) != (b.Duration == nil) {
			in.report(at, "schedule and duration go together: write both or neither")
		}
		for j, reason := range b.Reasons {
			in.oneOf(fmt.Sprintf("%s.reasons[%d]", at, j), string(reason), []string{"Underutilized", "Empty", "Drifted"}, nil)
		}
	}
}
