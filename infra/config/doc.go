// Package config reads the configuration of the CDK app: the clusters, their existing
// resources, and names.
//
// It reads the CDK's context, whose values are strings on the command line (--context
// clusterName=prod) and any JSON in cdk.json. It does not import the CDK. Read returns a
// complete Config or an error that names the key and the fix. Unknown keys are errors.
package config
