package settings

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// schedulerConfig is the part of kube-scheduler's configuration that Karpenter reads.
type schedulerConfig struct {
	PodTopologySpread struct {
		DefaultConstraints []corev1.TopologySpreadConstraint `json:"defaultConstraints"`
	} `json:"podTopologySpread"`
}

// parseSchedulerConfig decodes strictly and returns Karpenter's error texts.
func parseSchedulerConfig(s *Settings, text string) error {
	var config schedulerConfig
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		return fmt.Errorf("is not valid: parsing scheduler config, decoding scheduler config, %w", err)
	}
	constraints := config.PodTopologySpread.DefaultConstraints
	for i, c := range constraints {
		err := checkDefaultConstraint(c)
		for j := range constraints[:i] {
			if err == nil && c.TopologyKey == constraints[j].TopologyKey && c.WhenUnsatisfiable == constraints[j].WhenUnsatisfiable {
				err = fmt.Errorf(" is a duplicate of [%d], {%s, %s}", j, c.TopologyKey, c.WhenUnsatisfiable)
			}
		}
		if err != nil {
			return fmt.Errorf("is not valid: parsing scheduler config, validating scheduler config, podTopologySpread.defaultConstraints[%d]%w", i, err)
		}
	}
	s.DefaultConstraints = constraints
	return nil
}

// checkDefaultConstraint applies kube-scheduler's validation. The error follows the constraint's path.
func checkDefaultConstraint(c corev1.TopologySpreadConstraint) error {
	problems := validation.IsQualifiedName(c.TopologyKey)
	switch {
	case c.MaxSkew <= 0:
		return errors.New(".maxSkew must be greater than 0")
	case c.TopologyKey == "":
		return errors.New(".topologyKey must be set")
	case len(problems) > 0:
		return fmt.Errorf(".topologyKey %q is not a valid label name, %s", c.TopologyKey, strings.Join(problems, ", "))
	case c.WhenUnsatisfiable != corev1.DoNotSchedule && c.WhenUnsatisfiable != corev1.ScheduleAnyway:
		return fmt.Errorf(".whenUnsatisfiable %q must be one of %q or %q", c.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)
	case c.LabelSelector != nil:
		return errors.New(".labelSelector must not be set, as selectors are deduced for each pod")
	case len(c.MatchLabelKeys) > 0:
		return errors.New(".matchLabelKeys must not be set, as it has no effect on default constraints")
	}
	return nil
}
