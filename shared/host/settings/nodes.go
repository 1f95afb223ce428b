package settings

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

// PoolDeletionApproval defines which NodePools are deleted only after approval: those with more nodes than Nodes, or
// with more than Percent of the cluster's nodes.
type PoolDeletionApproval struct {
	On             bool
	Nodes, Percent int
}

func parseRepairRules(s *Settings, text string) error {
	policies, err := repair.Parse(text)
	if err != nil {
		return fmt.Errorf("is not a list of rules: %w", err)
	}
	s.Repair.Policies = policies
	return nil
}

// setRepairPolicies sets Karpenter's policies if the rules are not set.
func (s *Settings) setRepairPolicies() {
	s.Repair.TerminateFirst = s.TerminateFirstRepair
	switch {
	case s.Repair.Policies != nil:
	case s.LegacyNodeRepair:
		s.Repair.Policies = repair.LegacyProvider()
	default:
		s.Repair.Policies = repair.Provider(s.AWSFeatureGates.RebootForRepair)
	}
}

// FindLegacyRepair returns the settings of the legacy node repair; without policies if it is off.
func (s *Settings) FindLegacyRepair() repair.PolicySet {
	if !s.NodeRepair || !s.LegacyNodeRepair {
		return repair.PolicySet{}
	}
	return s.Repair
}

// NewRepairMatcher returns the policies of node repair, or nil if it is off or the legacy one. An invalid set of
// policies is an error, which stops the process.
func (s *Settings) NewRepairMatcher() (*repair.Matcher, error) {
	if !s.NodeRepair || s.LegacyNodeRepair {
		return nil, nil
	}
	m, err := repair.NewMatcher(s.Repair)
	if err != nil {
		return nil, fault.F("reading "+RepairRules, fault.Invalid, "%w", err)
	}
	return m, nil
}

// parseShare parses a number or a percentage.
func parseShare(set func(*Settings, intstr.IntOrString)) setter {
	return func(s *Settings, text string) error {
		n, percent, err := parseNumberOrPercent(text)
		if err != nil {
			return err
		}
		if percent {
			set(s, intstr.FromString(strconv.Itoa(n)+"%"))
		} else {
			set(s, intstr.FromInt32(int32(n)))
		}
		return nil
	}
}

// parseNumberOrPercent parses "3" or "20%".
func parseNumberOrPercent(text string) (n int, percent bool, err error) {
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	n, err = strconv.Atoi(digits)
	if err != nil || n < 0 || n > math.MaxInt32 || percent && n > 100 {
		return 0, false, errors.New("is not a number or a percentage up to 100%")
	}
	return n, percent, nil
}

// parsePoolApproval parses "off", or a number, a percentage, or both separated by a comma. An omitted limit never
// applies.
func parsePoolApproval(s *Settings, text string) error {
	s.PoolDeletionApproval = PoolDeletionApproval{}
	if text == "off" {
		return nil
	}
	gate := PoolDeletionApproval{On: true, Nodes: math.MaxInt, Percent: 100}
	for item := range strings.SplitSeq(text, ",") {
		n, percent, err := parseNumberOrPercent(item)
		switch {
		case err != nil:
			return err
		case percent:
			gate.Percent = n
		default:
			gate.Nodes = n
		}
	}
	s.PoolDeletionApproval = gate
	return nil
}
