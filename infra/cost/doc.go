// Package cost estimates the monthly cost of one cluster's stack from counts of requests.
// Prices have a source and a date, and frequencies a reason. Alarms, schedules and queues
// are counted from the stack itself. The estimate includes cheap items, ignores free tiers,
// and uses the larger value of uncertain counts.
package cost
