package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// multiClusterStack is the default name of a stack with several clusters.
const multiClusterStack = "Joist"

// functionPrefix returns the name prefix of shared functions, or "" without them.
func (c *Config) functionPrefix(clusters int) (string, error) {
	switch {
	case !c.SharedFunctions:
		return "", nil
	case clusters < 2:
		return "", newError("leave it out, or list several clusters: clusters=prod,staging", "sharedFunctions requires a stack with several clusters; this one has one")
	case c.StackName == "":
		// With a default, stacks in two regions would create the same roles, and the second
		// deployment would fail.
		return "", newError("set the stack's name, with another name in each region of the account: stackName=joist-eu-west-1",
			"sharedFunctions requires stackName: it is the prefix of the functions' roles, whose names are unique across regions")
	}
	return strings.ToLower(c.StackName), nil
}

// checkSharedEnvironment rejects different values of variables of shared functions.
func (c *Config) checkSharedEnvironment() error {
	if !c.SharedFunctions {
		return nil
	}
	first := c.Clusters[0]
	for _, other := range c.Clusters[1:] {
		names := slices.Concat(slices.Collect(maps.Keys(first.Environment)), slices.Collect(maps.Keys(other.Environment)))
		slices.Sort(names)
		for _, name := range names {
			if ours, theirs := first.Environment[name], other.Environment[name]; settings.IsProcessWide(name) && ours != theirs {
				return newError("set the same value for each cluster, or leave sharedFunctions out",
					"%s applies to functions that all clusters share: it is %q for %s and %q for %s", name, ours, first.Name, theirs, other.Name)
			}
		}
	}
	return nil
}
