package settings_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

func TestSchedulerConfig(t *testing.T) {
	zones := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway}
	for name, c := range map[string]struct {
		text string
		want []corev1.TopologySpreadConstraint
	}{
		"nothing":     {"", nil},
		"no settings": {"{}", nil},
		"YAML": {`
podTopologySpread:
  defaultConstraints:
  - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
  - {maxSkew: 3, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}
`, []corev1.TopologySpreadConstraint{zones, {MaxSkew: 3, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule}}},
		"JSON": {`{"podTopologySpread":{"defaultConstraints":[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway"}]}}`, []corev1.TopologySpreadConstraint{zones}},
		"one key, hard and soft": {`
podTopologySpread:
  defaultConstraints:
  - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
  - {maxSkew: 3, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
`, []corev1.TopologySpreadConstraint{zones, {MaxSkew: 3, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := settings.Read(environment(map[string]string{"SCHEDULER_CONFIG": c.text}))
			if diff := cmp.Diff(c.want, got.DefaultConstraints); diff != "" || err != nil {
				t.Errorf("%v%s", err, diff)
			}
		})
	}
}

func TestSchedulerConfigRejects(t *testing.T) {
	const prefix = "parsing scheduler config, validating scheduler config, podTopologySpread.defaultConstraints"
	constraints := func(items string) string { return "podTopologySpread: {defaultConstraints: [" + items + "]}" }
	for name, c := range map[string]struct{ text, says string }{
		"unknown field":           {"notARealField: true", `parsing scheduler config, decoding scheduler config, error unmarshaling JSON: while decoding JSON: json: unknown field "notARealField"`},
		"unknown nested field":    {constraints("{maxSkews: 1}"), `unknown field`},
		"a key twice":             {"podTopologySpread: {}\npodTopologySpread: {}", `already set in map`},
		"malformed":               {"podTopologySpread: {", "parsing scheduler config, decoding scheduler config, "},
		"maxSkew of zero":         {constraints("{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}"), prefix + "[0].maxSkew must be greater than 0"},
		"no topologyKey":          {constraints("{maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}"), prefix + "[0].topologyKey must be set"},
		"no label name":           {constraints("{maxSkew: 1, topologyKey: not a name, whenUnsatisfiable: ScheduleAnyway}"), prefix + `[0].topologyKey "not a name" is not a valid label name, `},
		"wrong whenUnsatisfiable": {constraints("{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: Sometimes}"), prefix + `[0].whenUnsatisfiable "Sometimes" must be one of "DoNotSchedule" or "ScheduleAnyway"`},
		"a selector": {constraints("{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: a}}}"),
			prefix + "[0].labelSelector must not be set, as selectors are deduced for each pod"},
		"matchLabelKeys": {constraints("{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, matchLabelKeys: [app]}"),
			prefix + "[0].matchLabelKeys must not be set, as it has no effect on default constraints"},
		"a duplicate": {constraints("{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}, {maxSkew: 3, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}"),
			prefix + "[1] is a duplicate of [0], {zone, ScheduleAnyway}"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := settings.Read(environment(map[string]string{"SCHEDULER_CONFIG": c.text}))
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want it to contain %q", err, c.says)
			}
		})
	}
}
