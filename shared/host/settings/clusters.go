package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// processWide are the variables that apply to the whole process, not to one cluster.
var processWide = append([]string{Clusters, Region, EC2Share, Holder, Kubeconfig, LogLevel, MetricsPort, Profiling, HealthPort, CloudWatch, Lambda}, OpenTelemetry...)

// IsProcessWide reports whether a variable applies to the whole process, so that no entry of Clusters may set it.
func IsProcessWide(name string) bool { return slices.Contains(processWide, name) }

// clusterEntry holds the variables of one cluster by name. They override the process's environment.
type clusterEntry map[string]string

// lookupIn returns a lookup that checks the entry first. An entry overrides a variable's aliases too: Read tries the
// variable's own name before its aliases.
func (e clusterEntry) lookupIn(lookup func(name string) (string, bool)) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		if text, ok := e[name]; ok {
			return text, true
		}
		return lookup(name)
	}
}

// ReadClusters reads the settings of each cluster that the process serves: the clusters that Clusters lists, or the one that
// the environment describes. For each listed cluster, the required variables, the cluster's name and the queue URL
// must be set.
func ReadClusters(lookup func(name string) (string, bool), required ...string) ([]Settings, error) {
	text, _ := lookup(Clusters)
	if text == "" {
		one, err := Read(lookup, required...)
		return []Settings{one}, err
	}
	entries, err := parseEntries(text)
	if err != nil {
		return nil, fault.E("reading "+Clusters, fault.Invalid, err)
	}
	var all []Settings
	var problems []error
	for i, e := range entries {
		s, err := Read(e.lookupIn(lookup), append(slices.Clone(required), ClusterName, QueueURL)...)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s[%d]: %w", Clusters, i, err))
		}
		all = append(all, s)
	}
	if err := errors.Join(append(problems, checkUnique(all)...)...); err != nil {
		return nil, fault.E("reading the clusters to serve", fault.Invalid, err)
	}
	return all, nil
}

// checkUnique rejects settings with which two clusters would share a name, a queue or a document location.
func checkUnique(all []Settings) []error {
	var problems []error
	seen := map[string]int{}
	for i, s := range all {
		for _, v := range [][2]string{{ClusterName, s.Cluster.Name}, {QueueURL, s.QueueURL}, {DeadLetterURL, s.DeadLetterURL}, {Prefix, documentLocation(s)}} {
			if v[1] == "" {
				continue // Read has already reported it if it is required.
			}
			mine := v[0] + "=" + v[1]
			if first, taken := seen[mine]; taken {
				problems = append(problems, fmt.Errorf("%s[%d] has the %s of %s[%d]: give each cluster its own", Clusters, i, mine, Clusters, first))
			}
			seen[mine] = i
		}
	}
	return problems
}

// documentLocation returns where a cluster's documents are, or "" without a bucket. Leading and trailing slashes of
// the prefix do not matter.
func documentLocation(s Settings) string {
	if s.Bucket == "" {
		return ""
	}
	return strings.Trim(s.Prefix, "/") + " in the bucket " + s.Bucket
}

// parseEntries parses the list, and rejects unknown and process-wide variables.
func parseEntries(text string) ([]clusterEntry, error) {
	var entries []clusterEntry
	if err := json.Unmarshal([]byte(text), &entries); err != nil || len(entries) == 0 {
		return nil, errors.New("is not a JSON list of objects with the variables of each cluster")
	}
	for i, e := range entries {
		for _, name := range slices.Sorted(maps.Keys(e)) {
			known := slices.ContainsFunc(Variables, func(v Variable) bool { return v.Name == name })
			switch {
			case !known:
				return nil, fmt.Errorf("has the unknown variable %s in object %d", name, i)
			case IsProcessWide(name):
				return nil, fmt.Errorf("has %s in object %d, which applies to the whole process: set it as an environment variable", name, i)
			}
		}
	}
	return entries, nil
}
