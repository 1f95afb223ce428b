package settings

import "fmt"

// noEffect are the variables of Karpenter that Joist does not read, with the reason. One that is set is a warning.
var noEffect = []struct{ name, why string }{
	{"AMI_REFRESH_INTERVAL", "images are read each minute, and when the node class changes"},
	{"SUBNET_REFRESH_INTERVAL", "subnets are read each minute, and when the node class changes"},
	{"KUBE_CLIENT_QPS", "the rate is fixed at 1,000 requests a second"},
	{"KUBE_CLIENT_BURST", "the burst is fixed at 300 requests"},
	{"CPU_REQUESTS", "the number of workers is fixed"},
	{"MEMORY_LIMIT", "Go reads its memory limit from GOMEMLIMIT"},
	{"LOG_OUTPUT_PATHS", "logs go to standard output"},
	{"LOG_ERROR_OUTPUT_PATHS", "logs go to standard output"},
	{"DISABLE_CONTROLLER_WARMUP", "a standby replica always fills its cache"},
	{"DISABLE_CLUSTER_STATE_OBSERVABILITY", "metrics and Events of nodes and pods cannot be turned off"},
	{"KARPENTER_SERVICE", "there is no webhook"},
}

// warnOfNoEffect adds a warning for each variable that is set and has no effect.
func (s *Settings) warnOfNoEffect(lookup func(name string) (string, bool)) {
	for _, v := range noEffect {
		if text, isSet := lookup(v.name); isSet && text != "" {
			s.Warnings = append(s.Warnings, fmt.Sprintf("%s has no effect: %s", v.name, v.why))
		}
	}
}
