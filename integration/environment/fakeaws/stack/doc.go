// Package stack reads from a synthesized CloudFormation template what the fake AWS needs:
// queues, buses, rules, schedules, functions and roles, with every reference resolved to
// a name or an ARN.
//
// So the same template that is deployed wires the tests' AWS, and a mistake in it (a rule
// without a target, a function that reads another service's queue) fails the tests.
package stack
