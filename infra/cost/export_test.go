package cost

// IdleNames returns the names of the metrics of a cluster at rest.
func IdleNames() []string {
	var names []string
	for _, m := range idleMetrics {
		names = append(names, m.name)
	}
	return names
}
