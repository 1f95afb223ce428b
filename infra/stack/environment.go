package stack

import (
	"encoding/json"
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// functionTimeout returns a function's timeout. Lambda rejects one above the queue's
// visibility timeout (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html), and the stack does not change an existing queue.
func functionTimeout(k config.Cluster, service string) time.Duration {
	q, _ := k.Plan.Queue(service)
	if q.Existing {
		return min(q.Timeout, k.Queue.Visibility)
	}
	return q.Timeout
}

// functionEnvironment returns the variables of a cluster's function. Lambda sets the region.
func functionEnvironment(p place, bucket string, c config.Config, k config.Cluster, service string) map[string]string {
	q, _ := k.Plan.Queue(service)
	e := map[string]string{settings.ClusterName: k.Name, settings.Bus: k.Plan.Bus, settings.QueueURL: p.queueURL(q.Name), settings.DeadLetterURL: p.queueURL(q.Dead)}
	if k.UID != "" {
		e[settings.ClusterUID] = k.UID
	}
	if service != "interruption" {
		e[settings.Bucket], e[settings.Prefix] = bucket, k.Name
	}
	if n := len(c.Clusters); n > 1 && service == "launcher" {
		// EC2's rate limits are per account.
		e[settings.EC2Share] = strconv.FormatFloat(math.Floor(1000/float64(n))/1000, 'g', -1, 64)
	}
	maps.Copy(e, k.Environment)
	if service == "catalog" {
		for name, on := range map[string]bool{settings.ZonalShift: k.ZonalShift, settings.IsolatedVPC: k.IsolatedVPC} {
			if on {
				e[name] = "true"
			}
		}
	}
	return e
}

// sharedEnvironment returns the variables of a shared function: those of the process, and a
// list with those of each cluster. Its concurrency equals the sum of the clusters' own
// functions, so each instance has the same share of EC2's rate limits.
func sharedEnvironment(p place, bucket string, c config.Config, service string) map[string]string {
	all := map[string]string{}
	var list []map[string]string
	for _, k := range c.Clusters {
		one := functionEnvironment(p, bucket, c, k, service)
		for name, value := range one {
			if settings.IsProcessWide(name) || name == settings.Bucket {
				all[name] = value
				delete(one, name)
			}
		}
		one[settings.RoleARN] = p.iamARN("role/" + roleName(k, service))
		list = append(list, one)
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic("list of strings: " + err.Error())
	}
	all[settings.Clusters] = string(text)
	return all
}

// environmentMax is Lambda's limit of a function's variables in bytes, counted as JSON
// (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
const environmentMax = 4096

// checkEnvironmentSizes rejects more clusters than fit into a shared function's variables.
func checkEnvironmentSizes(c config.Config) error {
	if !c.SharedFunctions {
		return nil
	}
	p := placeholderPlace(c)
	for _, service := range topology.ExternalServices {
		text, err := json.Marshal(sharedEnvironment(p, bucketOf(c, p), c, service))
		if err != nil {
			panic("map of strings: " + err.Error())
		}
		if len(text) > environmentMax {
			return fault.F("configuring the function of "+service+" for its clusters", fault.Invalid, "the settings of %d clusters have %d bytes; Lambda allows %d", len(c.Clusters), len(text), environmentMax).
				WithHint("put some of the clusters into another stack, or leave sharedFunctions out")
		}
	}
	return nil
}
