package planning

import (
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Values is a set of what a label may be: a set of strings, and whether the
// label may be absent. Absence is one more element rather than a special case,
// so NotIn (which a missing label satisfies) and In (which it does not) are
// ordinary sets and compatibility is an intersection that is not empty.
//
// The zero value is the empty set. Values are immutable.
type Values struct {
	// absent: a node without the label is in the set.
	absent bool
	// others: the set holds every string but the listed ones; otherwise exactly
	// the listed ones.
	others bool
	// listed is sorted and has no doubles.
	listed []string
	// bounded: of the others, only whole numbers from least to most are in.
	bounded     bool
	least, most int64
	// minValues is how many values must remain possible at launch.
	minValues int
}

// AnyValue is the set of everything, absence included: no requirement at all.
func AnyValue() Values { return Values{absent: true, others: true} }

// AbsentValue is the set that only a missing label satisfies.
func AbsentValue() Values { return Values{absent: true} }

// In is the set of exactly these values.
func In(values ...string) Values { return Values{listed: SortUnique(values)} }

// NewValues reads one requirement. What Kubernetes would refuse, an
// unknown operator, a bound that is no whole number or a value that is no label
// value, gives the empty set: such a requirement matches no node. The API server
// does not validate the values of preferred node affinity.
func NewValues(operator corev1.NodeSelectorOperator, values ...string) Values {
	if !areLabelValues(values) {
		return Values{}
	}
	switch operator {
	case karpenter.NodeSelectorOpIn:
		return In(values...)
	case karpenter.NodeSelectorOpNotIn:
		return Values{absent: true, others: true, listed: SortUnique(values)}
	case karpenter.NodeSelectorOpExists:
		return Values{others: true}
	case karpenter.NodeSelectorOpDoesNotExist:
		return AbsentValue()
	}
	if len(values) != 1 {
		return Values{}
	}
	bound, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil {
		return Values{}
	}
	return newRange(operator, bound)
}

// newRange turns Gt and Lt into their closed forms, so that there is one kind of
// bound to intersect. A range begins at 0 at the lowest: a label value cannot
// begin with a minus sign.
func newRange(operator corev1.NodeSelectorOperator, bound int64) Values {
	least, most := int64(0), int64(math.MaxInt64)
	switch operator {
	case karpenter.NodeSelectorOpGte:
		least = bound
	case karpenter.NodeSelectorOpLte:
		most = bound
	case karpenter.NodeSelectorOpGt:
		if bound == math.MaxInt64 {
			return Values{}
		}
		least = bound + 1
	case karpenter.NodeSelectorOpLt:
		if bound == 0 {
			return Values{}
		}
		most = bound - 1
	default:
		return Values{}
	}
	return Values{others: true, bounded: true, least: least, most: most}
}

// WithMinValues asks that n different values remain possible.
func (v Values) WithMinValues(n int) Values {
	v.minValues = n
	return v
}

// MinValues is how many different values must remain possible; 0 for any.
func (v Values) MinValues() int { return v.minValues }

// Has reports whether a node whose label is value is in the set.
func (v Values) Has(value string) bool {
	_, listed := slices.BinarySearch(v.listed, value)
	if !v.others {
		return listed
	}
	return !listed && v.isInBounds(value)
}

// AllowsAbsent reports whether a node without the label is in the set.
func (v Values) AllowsAbsent() bool { return v.absent }

func (v Values) isInBounds(value string) bool {
	if !v.bounded {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && v.least <= n && n <= v.most
}

// IsEmpty reports whether no node at all is in the set. Of a range, only numbers
// in their usual spelling count: "007" keeps no range alive whose 7 is excluded.
func (v Values) IsEmpty() bool {
	if v.absent {
		return false
	}
	if !v.others {
		return len(v.listed) == 0
	}
	return v.bounded && v.excludesWholeRange()
}

// excludesWholeRange reports whether every number of the range is excluded.
func (v Values) excludesWholeRange() bool {
	if v.least > v.most {
		return true
	}
	if width := uint64(v.most) - uint64(v.least); width >= uint64(len(v.listed)) {
		return false
	}
	for n := v.least; ; n++ {
		if v.Has(strconv.FormatInt(n, 10)) {
			return false
		}
		if n == v.most {
			return true
		}
	}
}

// ListValues returns the values of a set that is a list of values. It does not report whether
// the label may be absent.
func (v Values) ListValues() ([]string, bool) {
	if v.others {
		return nil, false
	}
	return v.listed, true
}

// SingleValue is the one value that a node of the set must have.
func (v Values) SingleValue() (string, bool) {
	if v.others || v.absent || len(v.listed) != 1 {
		return "", false
	}
	return v.listed[0], true
}

// IsSubset reports whether every node of v is in of.
func (v Values) IsSubset(of Values) bool {
	both := v.Intersect(of)
	both.minValues, v.minValues = 0, 0
	return both.equals(v)
}

func (v Values) equals(w Values) bool {
	if v.IsEmpty() || w.IsEmpty() {
		return v.IsEmpty() && w.IsEmpty()
	}
	return v.absent == w.absent && v.others == w.others && slices.Equal(v.listed, w.listed) &&
		v.bounded == w.bounded && v.least == w.least && v.most == w.most && v.minValues == w.minValues
}

// SortUnique returns the values sorted and without duplicates.
func SortUnique(values []string) []string {
	out := slices.Clone(values)
	slices.Sort(out)
	return slices.Compact(out)
}
