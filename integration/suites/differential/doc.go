// Package differential plans random scenarios with Joist and with upstream Karpenter's
// scheduler and compares the plans.
//
// It asserts: a validator that shares no code with Joist finds every plan of Joist valid;
// Joist places at least as many pods as Karpenter, and all pods that Karpenter places if
// pods do not compete; the price is not below the validator's bound; and the same problem
// yields the same plan, byte for byte, in any order of its pods. It logs without
// asserting: the price compared with Karpenter's, and Karpenter's invalid plans, which
// are excluded from the comparison.
//
// It also consolidates clusters with both: every command of Joist must be valid and save
// money, and the final price is logged with upstream's.
//
// A counterexample is printed as a minimized scenario file; scenarios in testdata run
// every time.
package differential
