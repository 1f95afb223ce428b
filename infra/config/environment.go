package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// SetByStack are the variables that the stack or Lambda sets.
var SetByStack = []string{
	settings.Clusters, settings.ClusterName, settings.ClusterUID, settings.RoleARN, settings.Bucket, settings.Prefix, settings.Bus, settings.QueueURL, settings.DeadLetterURL,
	settings.ZonalShift, settings.IsolatedVPC, settings.Region, settings.Lambda, settings.Interruptions, settings.CloudWatch,
}

// checkEnvironment rejects unknown variables and invalid values.
func (c *Cluster) checkEnvironment() error {
	for _, name := range slices.Sorted(maps.Keys(c.Environment)) {
		known := slices.ContainsFunc(settings.Variables, func(v settings.Variable) bool { return v.Name == name })
		switch {
		case slices.Contains(SetByStack, name):
			return newError("leave it out", "%s: environment has %s, which the stack sets itself", c.Name, name)
		case !known:
			return newError("run joist-launcher --help and the others to list their variables", "%s: environment has %s, which no service reads", c.Name, name)
		}
	}
	read, err := settings.Read(func(name string) (string, bool) {
		value, ok := c.Environment[name]
		return value, ok
	})
	if err == nil && len(read.Warnings) > 0 {
		// A function only warns and continues; here the value can still be corrected.
		err = errors.New(strings.Join(read.Warnings, "; "))
	}
	if err != nil {
		return newError("run joist-launcher --help and the others to list their variables", "%s: environment: %v", c.Name, err)
	}
	return nil
}

// checkMetrics rejects targets with which watcher and lifecycle would not start.
func (c *Cluster) checkMetrics() error {
	if _, err := settings.Read(func(name string) (string, bool) { return c.CloudWatchMetrics, name == settings.CloudWatch }); err != nil {
		return newError("give the address of the CloudWatch agent, or stdout: cloudWatchMetrics=tcp://cloudwatch-agent.amazon-cloudwatch:25888", "%s: cloudWatchMetrics: %v", c.Name, err)
	}
	return nil
}
