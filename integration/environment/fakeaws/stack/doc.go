// Package stack says what a synthesized CloudFormation template makes of the fake AWS:
// queues, buses, rules, schedules, functions and roles, with every reference resolved to
// a name or an ARN.
//
// So the tests' AWS is wired by the same file that a deployment sends, and a mistake in
// it (a rule without a target, a function that reads another's queue) fails them.
package stack
