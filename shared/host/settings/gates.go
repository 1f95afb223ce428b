package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// AWSFeatureGates are the feature gates of Karpenter's AWS provider that planning does not read. All are off by default.
type AWSFeatureGates struct {
	// RebootForRepair reboots a node instead of replacing it if that clears its fault.
	RebootForRepair bool
}

// parseFeatureGates parses Karpenter's feature gates: "NodeOverlay=true,NodeRepair=false". Gates that are not named
// keep their defaults.
func parseFeatureGates(s *Settings, text string) error {
	s.Scheduling.Gates.ReservedCapacity = true
	return s.parseGates(FeatureGates, text, s.coreGates())
}

// coreGates returns where the gates of FeatureGates are, by name.
func (s *Settings) coreGates() map[string]*bool {
	return map[string]*bool{
		"ReservedCapacity": &s.Scheduling.Gates.ReservedCapacity, "NodeOverlay": &s.Scheduling.Gates.NodeOverlay,
		"StaticCapacity": &s.Scheduling.Gates.StaticCapacity, "CapacityBuffer": &s.Scheduling.Gates.CapacityBuffer,
		"NodeRepair": &s.NodeRepair, "SpotToSpotConsolidation": &s.Scheduling.Gates.SpotToSpotConsolidation,
		"TerminateFirstDrift": &s.Scheduling.Gates.TerminateFirstDrift, "TerminateFirstRepair": &s.TerminateFirstRepair,
		"PodDeletionCostManagement": &s.PodDeletionCostManagement,
	}
}

func parseAWSFeatureGates(s *Settings, text string) error {
	return s.parseGates(AWSGates, text, s.awsGates())
}

// awsGates returns where the gates of AWSGates are, by name.
func (s *Settings) awsGates() map[string]*bool {
	return map[string]*bool{
		"NodeClassCEL": &s.Scheduling.Gates.NodeClassCEL, "DRANVIDIAGPU": &s.Scheduling.Gates.DRANVIDIAGPU, "DRAEFA": &s.Scheduling.Gates.DRAEFA,
		"RebootForRepair": &s.AWSFeatureGates.RebootForRepair,
	}
}

// parseGates sets the gates that the text names. It warns about unknown gates: Karpenter ignores them, so that gates of
// older and newer versions do not stop an installation.
func (s *Settings) parseGates(variable, text string, known map[string]*bool) error {
	for gate := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(gate), "=")
		name = strings.TrimSpace(name)
		switch on, err := strconv.ParseBool(strings.TrimSpace(value)); {
		case name == "" && value == "":
		case err != nil:
			return fmt.Errorf("is not a list of feature gates: use %s=true or %s=false", name, name)
		case known[name] == nil:
			s.Warnings = append(s.Warnings, fmt.Sprintf("%s: unknown gate %s has no effect", variable, name))
		default:
			*known[name] = on
		}
	}
	return nil
}

// checkGates refuses gates that exclude each other, and warns about gates without effect.
func (s *Settings) checkGates() error {
	if s.LegacyNodeRepair && s.TerminateFirstRepair {
		return fmt.Errorf("%s=true excludes the feature gate TerminateFirstRepair, which the legacy node repair does not have: unset one of them", LegacyRepair)
	}
	for _, of := range []struct {
		setting string
		on      bool
	}{{FeatureGates + ": TerminateFirstRepair", s.TerminateFirstRepair}, {AWSGates + ": RebootForRepair", s.AWSFeatureGates.RebootForRepair}, {LegacyRepair, s.LegacyNodeRepair}} {
		if of.on && !s.NodeRepair {
			s.Warnings = append(s.Warnings, of.setting+" has no effect without the feature gate NodeRepair")
		}
	}
	if s.NodeRepair && s.LegacyNodeRepair && s.AWSFeatureGates.RebootForRepair {
		s.Warnings = append(s.Warnings, AWSGates+": RebootForRepair has no effect with "+LegacyRepair+", which only replaces nodes")
	}
	if gates := s.Scheduling.Gates; !s.Scheduling.PlanDRARequests && (gates.DRANVIDIAGPU || gates.DRAEFA) {
		s.Warnings = append(s.Warnings, AWSGates+": DRANVIDIAGPU and DRAEFA have no effect without "+IgnoreDRA+"=false")
	}
	return nil
}

// leastRefreshInterval is Karpenter's minimum.
const leastRefreshInterval = time.Minute

func parseRefreshInterval(s *Settings, text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return errors.New("is not a duration of at least 1m")
	case d < leastRefreshInterval:
		return errors.New("is too short: security-group-refresh-interval must be at least 1m") // Karpenter's text.
	}
	s.SecurityGroupRefreshInterval = d
	return nil
}
