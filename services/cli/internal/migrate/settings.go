package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// sharedSettings are the variables on which launches and removals depend, with the defaults of both
// (Karpenter: pkg/operator/options/options.go of the core and of the AWS provider).
var sharedSettings = map[string]string{
	settings.BatchMax: "10s", settings.BatchIdle: "1s", settings.MemoryOverhead: "0.075", settings.Preferences: "Respect", settings.MinValues: "Strict",
	settings.ReservedENIs: "0", settings.LegacyRepair: "false", settings.ZonalShift: "false", settings.DisableDryRun: "false", settings.Scheduler: "",
	settings.CABundle: "", settings.FeatureGates: "ReservedCapacity=true", settings.AWSGates: "",
}

// gateVariables are the variables with a list of gates.
var gateVariables = []string{settings.FeatureGates, settings.AWSGates}

// checkSettings compares Karpenter's settings with Joist's.
func checkSettings(f MigrationFacts) MigrationStep {
	karpenter := f.karpenterDeployment()
	if karpenter == nil {
		return done("no Deployment of Karpenter to compare the settings with")
	}
	joists := f.joistDeployments()
	var differing []string
	for _, name := range slices.Sorted(maps.Keys(sharedSettings)) {
		have, want := readSetting(name, joists...), readSetting(name, *karpenter)
		if have != want {
			differing = append(differing, fmt.Sprintf("%s is %s in Karpenter and %s in Joist", name, quoteEmpty(want), quoteEmpty(have)))
		}
	}
	switch {
	case len(differing) == 0:
		return done("Joist has the gates and settings of Karpenter")
	case len(joists) == 0:
		return ready("Karpenter's settings are not the defaults: "+strings.Join(differing, "; "), "install Joist with Karpenter's values.yaml, which its chart accepts, and the same settings in the stack")
	}
	return ready(strings.Join(differing, "; "), "set Karpenter's values in the chart and in the stack (deploy/docs/settings.md), or accept the difference")
}

// readSetting returns the normalized value of a variable in the first Deployment that sets it, else the default.
func readSetting(name string, in ...doctor.Deployment) string {
	value := sharedSettings[name]
	for _, d := range in {
		if set := d.Environ[name]; set != "" {
			value = set
			break
		}
	}
	if slices.Contains(gateVariables, name) {
		return enabledGates(sharedSettings[name] + "," + value)
	}
	return value
}

// enabledGates returns the gates of a list that are on, sorted. Later values replace earlier ones.
func enabledGates(list string) string {
	on := map[string]bool{}
	for gate := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(gate), "=")
		if enabled, err := strconv.ParseBool(value); err == nil {
			on[name] = enabled
		}
	}
	maps.DeleteFunc(on, func(_ string, enabled bool) bool { return !enabled })
	return strings.Join(slices.Sorted(maps.Keys(on)), ",")
}

func quoteEmpty(text string) string { return cmp.Or(text, "not set") }

// approvalNodes is the default number of nodes above which the deletion of a NodePool waits for approval.
const approvalNodes = 5

// describeDifferences lists NodePools that Joist plans or deletes differently with the same manifest.
func describeDifferences(f MigrationFacts) MigrationStep {
	weights := map[int32][]string{}
	var large, notes []string
	for i := range f.Pools {
		p := &f.Pools[i]
		if !p.IsManaged() {
			continue
		}
		weight := int32(0)
		if p.Spec.Weight != nil {
			weight = *p.Spec.Weight
		}
		weights[weight] = append(weights[weight], p.Name)
		if len(f.claimsOf(p.Name)) > approvalNodes {
			large = append(large, p.Name)
		}
	}
	for _, weight := range slices.Sorted(maps.Keys(weights)) {
		if names := weights[weight]; len(names) > 1 {
			notes = append(notes, fmt.Sprintf("NodePools of equal weight (%s): Joist uses the cheaper node, Karpenter the later name", strings.Join(names, ", ")))
		}
	}
	if len(large) > 0 {
		notes = append(notes, "the deletion of a large NodePool ("+strings.Join(large, ", ")+") waits for approval")
	}
	detail := "new nodes are chosen by price, so they are smaller and more"
	return done(strings.Join(append([]string{detail}, notes...), "; ") + " (deploy/docs/differences.md)")
}
