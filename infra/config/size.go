package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Size is the size of a service's function.
type Size struct {
	// Memory is in MB; 1,769 MB have one vCPU
	// (https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html).
	Memory float64
	// Concurrency is the maximum concurrency of the event source, Batch its batch size.
	Concurrency, Batch float64
}

// newAccountMemory is the memory quota of a function in a new account, in MB, until AWS
// raises it
// (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
const newAccountMemory = 3008

// The bounds of a function's memory in MB
// (https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html).
const (
	memoryMin = 128
	memoryMax = 10240
)

// checkReserved rejects a reserved concurrency below that of the function's event sources,
// because Lambda would throttle them.
func (c *Config) checkReserved() error {
	for service, reserved := range c.Reserved {
		size, ok := Sizes[service]
		if !ok {
			return newError("name "+strings.Join(slices.Sorted(maps.Keys(Sizes)), ", "), "reservedConcurrency has the unknown function %q", service)
		}
		needed := int(size.Concurrency)
		if c.SharedFunctions {
			needed *= len(c.Clusters)
		}
		if reserved < needed {
			return newError(fmt.Sprintf("reserve at least %d", needed), "reservedConcurrency is %d for %s, but its event sources run %d copies at once", reserved, service, needed)
		}
	}
	return nil
}

// Sizes are the sizes of the functions by service. A cluster has one batch and one snapshot
// in flight, so planner and disruption get the memory that a new account allows. The
// launcher waits for EC2, whose rate limit its instances share.
var Sizes = map[string]Size{
	"planner":      {Memory: newAccountMemory, Concurrency: 2, Batch: 1},
	"disruption":   {Memory: newAccountMemory, Concurrency: 2, Batch: 1},
	"interruption": {Memory: 512, Concurrency: 10, Batch: 10},
	"catalog":      {Memory: 1769, Concurrency: 4, Batch: 5},
	"launcher":     {Memory: 1024, Concurrency: 2, Batch: 10},
}

// SizeOf returns the size of a service's function with the configured memory.
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
			return nil, newError("the functions are those of "+strings.Join(slices.Sorted(maps.Keys(Sizes)), ", "), "%s has the unknown function %q", key, service)
		}
		megabytes, err := strconv.Atoi(text)
		if err != nil || megabytes < memoryMin || megabytes > memoryMax {
			return nil, newError("set the memory in MB: "+key+"=planner=3538", "%s of %s is %q; Lambda allows %d to %d", key, service, text, memoryMin, memoryMax)
		}
		all[service] = float64(megabytes)
	}
	return all, nil
}
