// Package stack reads a synthesized CloudFormation template as CloudFormation would,
// and says what it makes: queues, buses, rules, schedules, functions and roles, with
// every reference resolved to a name or an ARN of the fake AWS.
//
// So the tests' AWS is wired by the same file that a deployment sends, and a mistake in
// it (a rule without a target, a function that reads another's queue) fails them. What
// cannot be resolved is an error: a reference that is guessed would hide the mistake.
package stack
