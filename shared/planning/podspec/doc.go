// Package podspec turns a Kubernetes pod into the part of it that planning
// reads, and groups pods that planning cannot tell apart.
//
// The invariant is an allow-list: a field that is not named here never leaves
// the cluster. Images, commands, environments, volumes' contents and annotations
// do not, except for the values of two annotations that change a decision.
package podspec
