// Package differential plans random scenarios with Joist and with upstream
// Karpenter's scheduler and compares what comes of them.
//
// What must hold: every plan of Joist is found valid by a judge that shares no
// code with it; Joist places at least as many pods as Karpenter does, and those
// that Karpenter places wherever pods do not compete; the price is no lower than
// the judge's bound; and the same problem gives the same plan, byte for byte,
// whatever the order in which its pods are told. What is told and not asserted:
// the price beside Karpenter's, and the plans of Karpenter's that the judge
// refuses, which are left out of the comparison.
//
// Clusters are consolidated on both sides, too: every command of Joist's must be
// valid and save, and what is left is told beside what upstream leaves.
//
// A counterexample is printed as a scenario file, shrunk; put into testdata it is
// played in every run.
package differential
