package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/catalog/expression"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Lint returns warnings about valid documents that are probably mistakes.
func Lint(documents []Document) []Warning {
	var out []Warning
	classes := map[string]*karpenter.EC2NodeClass{}
	for _, d := range documents {
		if class, ok := d.Object.(*karpenter.EC2NodeClass); ok {
			classes[class.Name] = class
		}
	}
	for _, d := range documents {
		l := linter{Document: d}
		switch object := d.Object.(type) {
		case *karpenter.NodePool:
			l.lintNodePool(object, classes)
		case *karpenter.EC2NodeClass:
			l.lintNodeClass(object)
		}
		l.lintPlaceholders()
		out = append(out, l.warnings...)
	}
	slices.SortStableFunc(out, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return out
}

type linter struct {
	Document
	warnings []Warning
}

func (l *linter) warn(path, format string, args ...any) {
	l.warnings = append(l.warnings, Warning{l.At(path), path, fmt.Sprintf(format, args...)})
}

func (l *linter) lintNodePool(p *karpenter.NodePool, classes map[string]*karpenter.EC2NodeClass) {
	if !p.IsManaged() {
		l.warn("spec.template.spec.nodeClassRef", "%s is not an EC2NodeClass: Joist leaves this NodePool to its own provider", p.Spec.Template.Spec.NodeClassRef.GroupKind())
		return
	}
	if len(p.Spec.Limits) == 0 && !p.IsStatic() {
		l.warn("spec.limits", "missing: without limits the cost of this pool is unlimited")
	}
	l.lintLimits(p)
	if ref := p.Spec.Template.Spec.NodeClassRef; ref != nil && classes[ref.Name] != nil {
		l.lintZones(p, classes[ref.Name])
	}
}

// lintLimits warns about limits below the smallest instance that the requirements allow,
// because no node could be launched.
func (l *linter) lintLimits(p *karpenter.NodePool) {
	for _, r := range p.Spec.Template.Spec.Requirements {
		least, ok := smallestSize(r)
		if !ok {
			continue
		}
		name, size := corev1.ResourceCPU, *resource.NewQuantity(least, resource.DecimalSI)
		if r.Key == karpenter.LabelInstanceMemory {
			name, size = corev1.ResourceMemory, *resource.NewQuantity(least<<20, resource.BinarySI)
		}
		limit, bounded := p.Spec.Limits[name]
		if bounded && limit.Cmp(size) < 0 {
			l.warn(joinPath("spec.limits", string(name)), "%s is less than the smallest instance that the requirements allow (%s): no node can ever be launched",
				limit.String(), size.String())
		}
	}
}

// smallestSize returns the smallest number of cores or MiB that a requirement allows.
func smallestSize(r karpenter.NodeSelectorRequirementWithMinValues) (int64, bool) {
	if r.Key != karpenter.LabelInstanceCPU && r.Key != karpenter.LabelInstanceMemory {
		return 0, false
	}
	least, found := int64(0), false
	for _, value := range r.Values {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 || n > 1<<40 {
			return 0, false
		}
		if !found || n < least {
			least, found = n, true
		}
	}
	switch r.Operator {
	case karpenter.NodeSelectorOpIn, karpenter.NodeSelectorOpGte:
		return least, found
	case karpenter.NodeSelectorOpGt:
		return least + 1, found
	}
	return 0, false
}

// lintZones warns about zones of a pool without a subnet.
func (l *linter) lintZones(p *karpenter.NodePool, class *karpenter.EC2NodeClass) {
	if len(class.Status.Subnets) == 0 {
		return
	}
	var have []string
	for _, subnet := range class.Status.Subnets {
		have = append(have, subnet.Zone)
	}
	for i, r := range p.Spec.Template.Spec.Requirements {
		if r.Key != corev1.LabelTopologyZone || r.Operator != karpenter.NodeSelectorOpIn {
			continue
		}
		missing := slices.DeleteFunc(slices.Clone(r.Values), func(zone string) bool { return slices.Contains(have, zone) })
		path := fmt.Sprintf("spec.template.spec.requirements[%d].values", i)
		switch {
		case len(missing) == len(r.Values):
			l.warn(path, "EC2NodeClass %s has no subnet in any of these zones, only in %v: no node can ever be launched", class.Name, have)
		case len(missing) > 0:
			l.warn(path, "EC2NodeClass %s has no subnet in %v", class.Name, missing)
		}
	}
}

// resourceID matches EC2 ids, including masked ones from documentation.
var resourceID = regexp.MustCompile(`^(ami|subnet|sg)-[0-9a-f*x]+$`)

func (l *linter) lintNodeClass(c *karpenter.EC2NodeClass) {
	family, err := c.AMIFamily()
	if err == nil && family == karpenter.AMIFamilyAL2 {
		path := "spec.amiFamily"
		if c.Spec.AMIFamily == nil {
			path = "spec.amiSelectorTerms[0].alias"
		}
		l.warn(path, "AL2 images end with Kubernetes 1.32: move to AL2023")
	}
	if settings, err := c.Spec.Kubelet.Parse(); err == nil && expression.Uses(settings) {
		l.warn("spec.kubelet", "it has expressions, which need the feature gate NodeClassCEL (off by default)")
	}
	for _, key := range slices.Sorted(maps.Keys(c.Spec.Tags)) {
		if strings.HasPrefix(key, "aws:") {
			l.warn(joinPath("spec.tags", key), "AWS reserves tags with the prefix aws: remove it")
		}
	}
	for i, term := range c.Spec.AMISelectorTerms {
		l.lintName(fmt.Sprintf("spec.amiSelectorTerms[%d].name", i), term.Name)
	}
	for i, term := range c.Spec.SecurityGroupSelectorTerms {
		l.lintName(fmt.Sprintf("spec.securityGroupSelectorTerms[%d].name", i), term.Name)
	}
}

func (l *linter) lintName(path, name string) {
	if resourceID.MatchString(name) {
		l.warn(path, "%s looks like an id, which matches nothing as a name: write it as id", quoteText(name))
	}
}
