// Package config is what a person asks of the CDK app: which clusters, what of theirs
// is there already, and how things are called.
//
// It reads the CDK's context, whose values are texts on the command line (--context
// clusterName=prod) and any JSON in cdk.json, and knows no CDK itself. The
// invariants: a Config is whole or refused, every refusal names the key and the
// remedy, and a key that nobody reads is refused instead of passed over.
package config
