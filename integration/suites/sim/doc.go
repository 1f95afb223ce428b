// Package sim runs all of Joist on the models in virtual time and injects faults chosen by a seed: crashes between
// calls, paused replicas, duplicate, late and reordered messages, lagging or expired watches, API server outages,
// capacity shortages and lost answers of EC2. A run has a fault phase and a recovery phase without faults, in
// which all pods must run and all nodes must go in the end. Checkers read the models and the log of calls during
// the whole run; they share no code with the services. The same seed gives the same run, with the same hash.
//
// RunVersions runs services of two versions in one cluster. Both run the same code; what differs is the texts that
// they exchange (package versions).
package sim
