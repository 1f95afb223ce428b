package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Size is what a service's function gets.
type Size struct {
	// Memory is in MB, unless the config gives another; 1,769 of them come with one processor
	// (https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html).
	Memory float64
	// Concurrency is how many copies run at the same time, and Batch how many messages
	// each is handed.
	Concurrency, Batch float64
}

// newAccountMemory is the most memory that a new account allows a function, in MB, until
// AWS raises that quota by the account's use or on request
// (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
const newAccountMemory = 3008

// The bounds of a function's memory in MB
// (https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html).
const (
	memoryMin = 128
	memoryMax = 10240
)

// checkReserved refuses to reserve fewer concurrent executions than the event sources of a
// function use: Lambda would throttle the others.
func (c *Config) checkReserved() error {
	for service, reserved := range c.Reserved {
		size, ok := Sizes[service]
		if !ok {
			return newError("name "+strings.Join(slices.Sorted(maps.Keys(Sizes)), ", "), "reservedConcurrency names %q, which is no function", service)
		}
		needed := int(size.Concurrency)
		if c.SharedFunctions {
			needed *= len(c.Clusters)
		}
		if reserved < needed {
			return newError(fmt.Sprintf("reserve at least %d", needed), "reservedConcurrency has %d for %s, and its event sources run %d copies at a time", reserved, service, needed)
		}
	}
	return nil
}

// Sizes of the functions. One batch and one snapshot of a cluster are in flight at a
// time, and both get as much as a new account allows; the launcher waits for EC2, whose rate it
// shares with its other copies.
var Sizes = map[string]Size{
	"planner":      {Memory: newAccountMemory, Concurrency: 2, Batch: 1},
	"disruption":   {Memory: newAccountMemory, Concurrency: 2, Batch: 1},
	"interruption": {Memory: 512, Concurrency: 10, Batch: 10},
	"catalog":      {Memory: 1769, Concurrency: 4, Batch: 5},
	"launcher":     {Memory: 1024, Concurrency: 2, Batch: 10},
}

// SizeOf is the size of a service's function, with the memory that the config gives it.
func (c *Config) SizeOf(service string) Size {
	size := Sizes[service]
	if given, ok := c.Memory[service]; ok {
		size.Memory = given
	}
	return size
}

// readMemory reads the memory of functions in MB by services.
func readMemory(r *reader, key string) (map[string]float64, error) {
	all := map[string]float64{}
	for service, text := range r.readPairs(key) {
		if _, known := Sizes[service]; !known {
			return nil, newError("the functions are those of "+strings.Join(slices.Sorted(maps.Keys(Sizes)), ", "), "%s names %q, which is no function", key, service)
		}
		megabytes, err := strconv.Atoi(text)
		if err != nil || megabytes < memoryMin || megabytes > memoryMax {
			return nil, newError("give the memory in MB: "+key+"=planner=3538", "%s of %s is %q, and Lambda takes %d to %d", key, service, text, memoryMin, memoryMax)
		}
		all[service] = float64(megabytes)
	}
	return all, nil
}
