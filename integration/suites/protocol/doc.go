// Package protocol has an explicit-state model of the launch of NodeClaims. Its tests visit every state that
// two writers, crashes, lost and doubled messages and delayed descriptions of EC2 can reach, and check the
// promises of deploy/docs/design.md in each. Planted bugs are flags of the model; bugs.md lists which promise
// each breaks.
//
// The model abstracts from time: a timeout may end at any moment, except where the design relies on a bound.
// Those bounds are guards of actions, and README.md lists them.
package protocol
