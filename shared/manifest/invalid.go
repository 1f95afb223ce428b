package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// validation collects the problems of one object.
type validation struct {
	Document
	problems []Problem
}

func (in *validation) report(path, format string, args ...any) {
	in.problems = append(in.problems, Problem{in.At(path), path, fmt.Sprintf(format, args...)})
}

// checkWord reports a value that is not in the list; hints explain some values.
func (in *validation) checkWord(path, word string, words []string, hints map[string]string) {
	if slices.Contains(words, word) {
		return
	}
	hint := hints[word]
	if best := NearestName(word, words); hint == "" && best != "" {
		hint = fmt.Sprintf(", did you mean %q?", best)
	}
	if hint == "" {
		hint = ": use one of " + strings.Join(words, ", ")
	}
	in.report(path, "invalid value %s%s", quoteText(truncateText(word)), hint)
}

// validate returns the problems that the schema's rules would reject. It has the rules of
// common mistakes only; the custom resource definitions have all of them.
func validate(d Document) []Problem {
	in := validation{Document: d}
	if d.Object.GetName() == "" && d.Object.GetGenerateName() == "" {
		in.report("metadata.name", "missing: an object needs a name")
	}
	switch object := d.Object.(type) {
	case *karpenter.NodePool:
		in.checkNodePool(object)
	case *karpenter.EC2NodeClass:
		in.checkNodeClass(object)
	}
	return in.problems
}

func (in *validation) checkNodePool(p *karpenter.NodePool) {
	template := &p.Spec.Template
	in.checkNodeClassRef(template.Spec.NodeClassRef)
	if !in.isWritten("spec.template.spec.requirements") {
		in.report("spec.template.spec.requirements", "missing: write the requirements, or [] for none")
	}
	for i, r := range template.Spec.Requirements {
		in.checkRequirement(fmt.Sprintf("spec.template.spec.requirements[%d]", i), r)
	}
	for key := range template.Labels {
		if err := karpenter.ValidateTemplateLabel(key); err != nil {
			in.report(joinPath("spec.template.metadata.labels", key), "%v", err)
		}
	}
	in.checkDisruption(&p.Spec.Disruption)
	if p.Spec.Weight != nil && (*p.Spec.Weight < 1 || *p.Spec.Weight > 100) {
		in.report("spec.weight", "%d is not between 1 and 100: leave it out for the lowest weight", *p.Spec.Weight)
	}
	if p.IsStatic() && p.Spec.Weight != nil {
		in.report("spec.weight", "a pool with replicas has no weight: remove one of them")
	}
}

// isWritten reports whether the manifest has the field, even if it is null.
func (in *validation) isWritten(path string) bool {
	_, ok := in.places[path]
	return ok
}

// checkNodeClassRef checks the node class reference; before v1 it was a name only.
func (in *validation) checkNodeClassRef(ref *karpenter.NodeClassReference) {
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

func (in *validation) checkRequirement(path string, r karpenter.NodeSelectorRequirementWithMinValues) {
	if r.Key == "" {
		in.report(path+".key", "missing: write the key of a label")
	} else if err := karpenter.ValidateTemplateLabel(r.Key); err != nil {
		if best := NearestName(r.Key, karpenter.WellKnownLabels()); best != "" && best != r.Key {
			in.report(path+".key", "unknown label %s, did you mean %q?", quoteText(truncateText(r.Key)), best)
		} else {
			in.report(path+".key", "%v", err)
		}
	}
	in.checkWord(path+".operator", string(r.Operator), []string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"}, nil)
	switch r.Operator {
	case karpenter.NodeSelectorOpIn:
		if len(r.Values) == 0 {
			in.report(path+".values", "missing: In needs at least one value")
		}
	case karpenter.NodeSelectorOpGt, karpenter.NodeSelectorOpLt, karpenter.NodeSelectorOpGte, karpenter.NodeSelectorOpLte:
		if len(r.Values) != 1 || !isWholeNumber(r.Values[0]) {
			in.report(path+".values", "%s needs one whole number in quotes, such as [\"4\"]", r.Operator)
		}
	}
	in.checkMinValues(path+".minValues", r)
}

func (in *validation) checkMinValues(path string, r karpenter.NodeSelectorRequirementWithMinValues) {
	switch least := r.MinValues; {
	case least == nil:
	case *least < 1 || *least > karpenter.MinValuesMax:
		in.report(path, "%d is not between 1 and %d", *least, karpenter.MinValuesMax)
	case r.Operator == karpenter.NodeSelectorOpIn && len(r.Values) < *least:
		in.report(path, "minValues is %d, but only %d values are listed", *least, len(r.Values))
	}
}

func isWholeNumber(text string) bool {
	return text != "" && len(text) < 19 && strings.Trim(text, "0123456789") == ""
}

func (in *validation) checkDisruption(d *karpenter.Disruption) {
	const path = "spec.disruption"
	in.checkWord(path+".consolidationPolicy", string(d.ConsolidationPolicy),
		[]string{"WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"},
		map[string]string{"WhenUnderutilized": `: it is WhenEmptyOrUnderutilized since v1`})
	for i, b := range d.Budgets {
		at := fmt.Sprintf("%s.budgets[%d]", path, i)
		if (b.Schedule == nil) != (b.Duration == nil) {
			in.report(at, "schedule and duration go together: write both or neither")
		}
		for j, reason := range b.Reasons {
			in.checkWord(fmt.Sprintf("%s.reasons[%d]", at, j), string(reason), []string{"Underutilized", "Empty", "Drifted", "Unhealthy"}, nil)
		}
	}
}
