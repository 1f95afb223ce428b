package convert

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// attributeConverter writes the attributes with which a group chooses instance types as requirements. Source of the
// fields and their defaults: the data type InstanceRequirements of the Amazon EC2 Auto Scaling API reference.
type attributeConverter struct {
	*groupPlan
	needs map[string]json.RawMessage
	add   func(key, operator string, values ...string)
}

// attributeRange is a range of numbers; nil is no bound.
type attributeRange struct{ Min, Max *float64 }

// rangeLabels are the labels of attributes with a range, and how many of the label's units one of the attribute's has.
var rangeLabels = map[string]struct {
	key   string
	units float64
}{
	"VCpuCount":                {karpenter.LabelInstanceCPU, 1},
	"MemoryMiB":                {karpenter.LabelInstanceMemory, 1},
	"TotalLocalStorageGB":      {karpenter.LabelInstanceLocalNVME, 1},
	"BaselineEbsBandwidthMbps": {karpenter.LabelInstanceEBSBandwidth, 1},
	"NetworkBandwidthGbps":     {karpenter.LabelInstanceNetworkBandwidth, 1000},
}

// valueLabels are the labels of attributes with a list of values.
var valueLabels = map[string]string{"CpuManufacturers": karpenter.LabelInstanceCPUManufacturer}

// attributeRemedies are the attributes that no label has, with what to write instead.
var attributeRemedies = map[string]string{
	"MemoryGiBPerVCpu":                               "choose categories: " + karpenter.LabelInstanceCategory + " c has 2 GiB for each vCPU, m 4 and r 8",
	"NetworkInterfaceCount":                          "choose the sizes with as many interfaces by " + karpenter.LabelInstanceSize,
	"AcceleratorTotalMemoryMiB":                      "write a requirement for " + karpenter.LabelInstanceGPUMemory + ", which is that of one GPU",
	"RequireHibernateSupport":                        "remove it: nodes are terminated, not hibernated",
	"BaselinePerformanceFactors":                     "choose families by " + karpenter.LabelInstanceFamily,
	"SpotMaxPricePercentageOverLowestPrice":          attributePrices,
	"MaxSpotPriceAsPercentageOfOptimalOnDemandPrice": attributePrices,
	"OnDemandMaxPricePercentageOverLowestPrice":      attributePrices,
}

const attributePrices = "none is needed: launches use the cheapest offerings; the annotation joist.sh/price-limit limits the cost of a NodePool"

// manufacturers are the manufacturers whose label has another value.
var manufacturers = map[string]string{"amazon-web-services": "aws"}

// addAttributes adds the requirements of attribute-based selection, and names what no label has.
func (p *groupPlan) addAttributes(add func(key, operator string, values ...string)) {
	a := attributeConverter{p, p.needs, add}
	a.addAbsent()
	a.addAccelerators()
	for _, field := range sortedKeys(p.needs) {
		a.addField(field)
	}
}

// addAbsent adds what the absence of an attribute means.
func (a attributeConverter) addAbsent() {
	a.addChoice("BareMetal", "excluded", func() { a.add(karpenter.LabelInstanceHypervisor, "In", "nitro", "xen") }, func() { a.add(karpenter.LabelInstanceHypervisor, "NotIn", "nitro", "xen") })
	a.addChoice("BurstablePerformance", "excluded", func() { a.add(karpenter.LabelInstanceCategory, "NotIn", "t") }, func() { a.add(karpenter.LabelInstanceCategory, "In", "t") })
	a.addChoice("LocalStorage", "included", func() { a.add(karpenter.LabelInstanceLocalNVME, "DoesNotExist") }, func() { a.add(karpenter.LabelInstanceLocalNVME, "Exists") })
}

// addChoice adds the requirement of an attribute that is included, excluded or required.
func (a attributeConverter) addChoice(field, standard string, exclude, require func()) {
	switch firstText(decodeAttribute[string](a, field), standard) {
	case "excluded":
		exclude()
	case "required":
		require()
	}
}

// decodeAttribute returns an attribute. A value of another type is reported, and counts as absent.
func decodeAttribute[T any](a attributeConverter, field string) (out T) {
	if text, found := a.needs[field]; found && json.Unmarshal(text, &out) != nil {
		a.remark(Unrepaired, "InstanceRequirements."+field, "has a value of another type: "+string(text), "correct it")
	}
	return out
}

// addField adds the requirement of one attribute.
func (a attributeConverter) addField(field string) {
	switch field {
	case "BareMetal", "BurstablePerformance", "LocalStorage", "AcceleratorTypes", "AcceleratorCount", "AcceleratorManufacturers", "AcceleratorNames":
		return
	case "AllowedInstanceTypes", "ExcludedInstanceTypes":
		a.addPatterns(field)
		return
	case "LocalStorageTypes":
		if types := decodeAttribute[[]string](a, field); slices.Contains(types, "hdd") {
			a.nameAttribute(field, "exclude or choose the families with hard disks (d2, d3, d3en, h1) by "+karpenter.LabelInstanceFamily)
		}
		return
	case "InstanceGenerations":
		a.addGenerations(decodeAttribute[[]string](a, field))
		return
	}
	if label, found := rangeLabels[field]; found {
		a.addRange(label.key, decodeAttribute[attributeRange](a, field), label.units)
		if label.key == karpenter.LabelInstanceEBSBandwidth {
			a.remark(Check, "InstanceRequirements."+field, "is now a requirement for "+label.key+", which is the maximum and not the baseline", "check the bounds")
		}
		return
	}
	if key, found := valueLabels[field]; found {
		a.addValues(key, decodeAttribute[[]string](a, field))
		return
	}
	a.nameAttribute(field, firstText(attributeRemedies[field], "write a requirement for a label that chooses the same instance types"))
}

func (a attributeConverter) nameAttribute(field, remedy string) {
	a.remark(Check, "InstanceRequirements."+field, string(a.needs[field])+" is not kept: no label has it", remedy)
}

// addRange adds the bounds of a range as whole numbers.
func (a attributeConverter) addRange(key string, in attributeRange, units float64) {
	if in.Min != nil && *in.Min > 0 {
		a.add(key, "Gt", formatWhole(math.Ceil(*in.Min*units)-1))
	}
	if in.Max != nil {
		a.add(key, "Lt", formatWhole(math.Floor(*in.Max*units)+1))
	}
}

func formatWhole(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) }

// addValues adds a list of values, with the names that the labels have.
func (a attributeConverter) addValues(key string, values []string) {
	if len(values) == 0 {
		return
	}
	var out []string
	for _, value := range values {
		out = append(out, firstText(manufacturers[value], strings.ToLower(value)))
	}
	a.add(key, "In", unique(out)...)
}

// addGenerations adds the nearest bound of the generations, which EC2 has no numbers for.
func (a attributeConverter) addGenerations(names []string) {
	isCurrent, isPrevious := slices.Contains(names, "current"), slices.Contains(names, "previous")
	switch {
	case isCurrent && !isPrevious:
		a.add(karpenter.LabelInstanceGeneration, "Gt", "2")
		a.remark(Check, "InstanceRequirements.InstanceGenerations", "current is now "+karpenter.LabelInstanceGeneration+" above 2, which is not the same for all families", "check the bound")
	case isPrevious && !isCurrent:
		a.nameAttribute("InstanceGenerations", "write the families as a requirement for "+karpenter.LabelInstanceFamily)
	}
}

// acceleratorLabels are the labels of a kind of accelerators.
type acceleratorLabels struct{ count, manufacturer, name string }

// addAccelerators adds the requirements of GPUs or of inference accelerators. A requirement for either is not
// possible, and there is no label for FPGAs.
func (a attributeConverter) addAccelerators() {
	gpus := acceleratorLabels{karpenter.LabelInstanceGPUCount, karpenter.LabelInstanceGPUManufacturer, karpenter.LabelInstanceGPUName}
	inference := acceleratorLabels{karpenter.LabelInstanceAcceleratorCount, karpenter.LabelInstanceAcceleratorManufacturer, karpenter.LabelInstanceAcceleratorName}
	types, makers := decodeAttribute[[]string](a, "AcceleratorTypes"), decodeAttribute[[]string](a, "AcceleratorManufacturers")
	names, count := decodeAttribute[[]string](a, "AcceleratorNames"), decodeAttribute[attributeRange](a, "AcceleratorCount")
	if count.Max != nil && *count.Max == 0 {
		a.add(gpus.count, "DoesNotExist")
		a.add(inference.count, "DoesNotExist")
		return
	}
	if len(types)+len(makers)+len(names) == 0 && count.Min == nil && count.Max == nil {
		return
	}
	labels := gpus
	switch findAcceleratorType(types, makers) {
	case "gpu":
	case "inference":
		labels = inference
	default:
		for _, field := range []string{"AcceleratorTypes", "AcceleratorManufacturers", "AcceleratorNames", "AcceleratorCount"} {
			if a.needs[field] != nil {
				a.nameAttribute(field, "write a NodePool with "+gpus.count+" for GPUs, and one with "+inference.count+" for other accelerators")
			}
		}
		return
	}
	if count.Min == nil && count.Max == nil {
		a.add(labels.count, "Exists")
	}
	a.addRange(labels.count, count, 1)
	a.addValues(labels.manufacturer, makers)
	a.addValues(labels.name, names)
}

// findAcceleratorType returns the only type of accelerators that is wanted, or that the manufacturers make; empty if there
// may be several.
func findAcceleratorType(types, makers []string) string {
	switch {
	case len(types) == 1:
		return types[0]
	case len(types) > 1 || len(makers) == 0 || slices.Contains(makers, "xilinx"):
		return ""
	case !slices.Contains(makers, "amazon-web-services"):
		return "gpu"
	case len(makers) == 1:
		return "inference"
	}
	return ""
}

// addPatterns adds lists of instance types and families. Allowed types of both kinds would exclude each other.
func (a attributeConverter) addPatterns(field string) {
	operator := map[bool]string{true: "In", false: "NotIn"}[field == "AllowedInstanceTypes"]
	var types, families, others []string
	for _, pattern := range decodeAttribute[[]string](a, field) {
		family, size, _ := strings.Cut(pattern, ".")
		switch {
		case !strings.Contains(pattern, "*") && size != "":
			types = append(types, pattern)
		case !strings.Contains(family, "*") && size == "*":
			families = append(families, family)
		default:
			others = append(others, pattern)
		}
	}
	if operator == "In" && (len(others) > 0 || len(types) > 0 && len(families) > 0) {
		a.nameAttribute(field, "write it as one requirement for "+karpenter.LabelInstanceFamily+" or "+corev1.LabelInstanceTypeStable)
		return
	}
	if len(types) > 0 {
		a.add(corev1.LabelInstanceTypeStable, operator, types...)
	}
	if len(families) > 0 {
		a.add(karpenter.LabelInstanceFamily, operator, families...)
	}
	for _, pattern := range others {
		a.remark(Check, "InstanceRequirements."+field, pattern+" is not kept: labels have no patterns", "write the families as a requirement for "+karpenter.LabelInstanceFamily)
	}
}
