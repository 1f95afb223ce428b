// Package cost estimates what the stack of one cluster costs in a month, from counts
// of requests. It is pure: prices are data with their source and date, how often each
// thing happens is data with its reason, and the counts of alarms, ticks and queues
// are those of the stack itself. The invariants: nothing is left out because it
// is cheap, free tiers are not counted, and where a count is not known the larger one is taken.
package cost
