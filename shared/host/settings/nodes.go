package settings

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// NodeRepairSettings define which nodes are unhealthy, and how many unhealthy nodes stop node repair.
type NodeRepairSettings struct {
	Rules     []karpenter.RepairPolicy
	Unhealthy intstr.IntOrString
	// UnhealthyInZone is nil for no limit.
	UnhealthyInZone *intstr.IntOrString
}

// PoolDeletionApproval defines which NodePools are deleted only after approval: those with more nodes than Nodes, or
// with more than Percent of the cluster's nodes.
type PoolDeletionApproval struct {
	On             bool
	Nodes, Percent int
}

func parseRepairRules(s *Settings, text string) error {
	rules, err := karpenter.ParseRepairPolicies(text)
	if err != nil {
		return fmt.Errorf("is not a list of rules: %w", err)
	}
	s.Repair.Rules = rules
	return nil
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
