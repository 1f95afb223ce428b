// Package stack is the CloudFormation stack: everything that Joist needs in an AWS
// account, made with the CDK from a config.Config.
//
// Each file is one construct with an opinion: a WorkQueue is never without a
// dead-letter queue, encryption and a policy that names its senders; a Worker is
// always arm64 and reports partial batches. The invariants: names come from
// shared/topology, rights from infra/rights, dashboards and alarms from
// shared/host/telemetry, so that no fact stands here a second time; whatever belongs to
// one cluster is below a construct of its own, also where its functions are those of all
// clusters (host.go); and the template depends on the config and
// the functions' binaries alone, so that it can be compared.
package stack
