package config

// Size is what a service's function gets.
type Size struct {
	// Memory is in MB; 1,769 of them come with one processor
	// (https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html).
	Memory float64
	// Concurrency is how many copies run at the same time, and Batch how many messages
	// each is handed.
	Concurrency, Batch float64
}

// Sizes of the functions. One batch and one snapshot of a cluster are in flight at a
// time, and both are worth two processors; the launcher waits for EC2, whose rate it
// shares with its other copies.
var Sizes = map[string]Size{
	"planner":      {Memory: 3538, Concurrency: 2, Batch: 1},
	"disruption":   {Memory: 3538, Concurrency: 2, Batch: 1},
	"interruption": {Memory: 512, Concurrency: 10, Batch: 10},
	"catalog":      {Memory: 1769, Concurrency: 4, Batch: 5},
	"launcher":     {Memory: 1024, Concurrency: 2, Batch: 10},
}
