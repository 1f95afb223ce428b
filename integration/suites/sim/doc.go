// Package sim runs the whole of Joist over the models, in virtual time, with
// everything that can go wrong going wrong by a seed: crashes between any two
// calls, replicas that pause in the middle of their work, messages that come
// twice, late or out of order, watches that lag each on its own or expire, an API
// server that falls silent for a minute or answers everything with one error, EC2
// that runs out, loses answers and shows things late. The pods have budgets, some
// must not be disrupted, and one has the same name again and again. In a part of the
// seeds the pool or the cluster has a price limit, disruption has budgets, consolidation
// may move so many pods of a workload in an hour, and the pool changes so that all of its
// nodes drift.
//
// A seed is a whole run. First comes the fault phase; then the faults stop, and
// in the liveness phase everything must come right. Checkers watch all the time.
// They share no code with what they check: they read the models and the log of
// calls. The same seed gives the same run, hash for hash.
package sim
