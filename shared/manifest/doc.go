// Package manifest reads the YAML that people write for a cluster, strictly, and
// says what is wrong with it where it is wrong.
//
// The idea: what an API server would prune in silence costs money (a pool with
// "limit" instead of "limits" has no limit at all), so nothing is pruned here.
// Every field that a kind does not have, every value of the wrong type and every
// line that is no YAML is named with file, line, column and path, together with
// the nearest right name.
//
// The invariants:
//
//   - Read is total: any bytes give documents or Problems, never a panic, and
//     size, depth and counts are bounded before anything is parsed.
//   - No half-read object: one problem in a file and the file gives no documents.
//   - All problems of a file are told together, up to a bound.
//   - A null is an absent field, as for the API server.
//   - Kinds that planning does not read are handed on without an object.
//
// Read refuses what the API server would refuse or lose; Lint warns of what it
// would accept and a person would regret.
package manifest
