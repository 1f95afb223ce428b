// Package expression evaluates the CEL expressions that spec.kubelet of an EC2NodeClass may hold, for each instance
// type: in maxPods, and in values of kubeReserved and systemReserved that are not quantities.
//
// Variables, functions, rounding and the texts of errors are Karpenter's (Karpenter: pkg/cel/environment.go and
// pkg/providers/instancetype/types.go). In addition, the cost of one evaluation is limited, in steps and not in time,
// so that the same expression gives the same result on every machine.
//
// The planner and the launch template use the same function, Resolve, so that a node reserves what the plan assumed.
package expression
