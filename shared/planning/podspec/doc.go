// Package podspec converts Kubernetes pods to the part that planning reads, and groups pods that
// planning treats as equal.
//
// Fields are allow-listed: a field that is not named here never leaves the cluster. Images, commands,
// environment variables, volume contents and annotations stay, except for the values of two
// annotations that affect planning.
package podspec
