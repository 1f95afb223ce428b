// Package stack builds the CloudFormation stack with all AWS resources of Joist from a
// config.Config, with the CDK.
//
// Names come from shared/topology, policies from infra/rights, the dashboard and alarms from
// shared/host/telemetry. Each queue has a DLQ, encryption and a policy with its
// senders; each function is arm64 and reports partial batch failures. All resources of a
// cluster are below one construct. The template depends only on the config and the
// functions' binaries, so it can be compared with a golden file.
package stack
