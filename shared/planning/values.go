package planning

import (
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Values is a set of allowed values of a label, including whether the label may be absent. Absence is
// one more element, so that NotIn, which a missing label satisfies, and In, which it does not, are
// ordinary sets, and two requirements are compatible if their intersection is not empty.
//
// The zero value is the empty set. Values are immutable.
type Values struct {
	// absent is true if a node without the label is in the set.
	absent bool
	// others is true if the set is every string except the listed ones; otherwise it is exactly the
	// listed ones.
	others bool
	// listed is sorted and has no duplicates.
	listed []string
	// bounded is true if of the others only integers from least to most are in the set.
	bounded     bool
	least, most int64
	// minValues is how many values must remain possible at launch.
	minValues int
}

// AnyValue returns the set of all values, including absence: no requirement.
func AnyValue() Values { return Values{absent: true, others: true} }

// AbsentValue returns the set that only a missing label satisfies.
func AbsentValue() Values { return Values{absent: true} }

// In returns the set of exactly these values.
func In(values ...string) Values { return Values{listed: SortUnique(values)} }

// NewValues converts one requirement. An unknown operator, a bound that is not an integer or an
// invalid label value gives the empty set, which matches no node. The API server does not validate the
// values of preferred node affinity.
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

// newRange converts Gt and Lt to inclusive bounds, so that only one kind of bound needs to be
// intersected. A range starts at 0 or above, because a label value cannot start with a minus sign.
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

// WithMinValues returns the set with n as its minValues.
func (v Values) WithMinValues(n int) Values {
	v.minValues = n
	return v
}

// MinValues returns how many different values must remain possible; 0 if there is no minimum.
func (v Values) MinValues() int { return v.minValues }

// Has reports whether a node with this value of the label is in the set.
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

// IsEmpty reports whether no node is in the set. In a range only numbers in their usual format count:
// "007" does not keep a range non-empty if 7 is excluded.
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

// ListValues returns the values of a set that is a list; false for a complement. The label may still
// be absent.
func (v Values) ListValues() ([]string, bool) {
	if v.others {
		return nil, false
	}
	return v.listed, true
}

// SingleValue returns the value that every node of the set has; false if there is more than one.
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
	return both.Equals(v)
}

// Equals reports whether both are the same set with the same minValues. Empty sets are equal.
func (v Values) Equals(w Values) bool {
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
