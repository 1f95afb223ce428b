package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/event"
)

// InboxPattern returns the event pattern that selects the facts of a cluster that lifecycle consumes. NewPlan must
// accept the name.
func InboxPattern(cluster string) string { return factPattern(cluster, inboxTypes()) }

// inboxTypes returns the facts that lifecycle consumes.
func inboxTypes() []event.Type {
	var types []event.Type
	for _, spec := range event.Specs {
		if spec.IsFact() && slices.Contains(spec.Consumers, "lifecycle") {
			types = append(types, spec.Type)
		}
	}
	return types
}

// allFactTypes returns the facts of all services.
func allFactTypes() []event.Type {
	var types []event.Type
	for _, spec := range event.Specs {
		if spec.IsFact() {
			types = append(types, spec.Type)
		}
	}
	return types
}

// factPattern selects facts of these types about the cluster. IAM checks the source and the detail-type of an entry,
// but the consumer reads the source and the type inside the detail. So each type is an alternative that requires its
// producer and its type in both places: a service with permission for one fact cannot send another.
func factPattern(cluster string, types []event.Type) string {
	var alternatives []string
	for _, spec := range event.Specs {
		if !slices.Contains(types, spec.Type) {
			continue
		}
		for _, producer := range spec.Producers {
			alternatives = append(alternatives, fmt.Sprintf(`{"source":["joist/%[1]s"],"detail-type":[%[2]q],"detail":{"source":["joist/%[1]s"],"type":[%[2]q]}}`, producer, spec.Type))
		}
	}
	return fmt.Sprintf(`{"detail":{"cluster":[%q]},"$or":[%s]}`, cluster, strings.Join(alternatives, ","))
}
