// Package template resolves a synthesized CloudFormation template: it replaces intrinsic
// functions and references by the values of a deployment to one account and region. All
// tests of templates use it: the policy tests, the rules for all resources, and the fake AWS
// of the end-to-end tests. Libraries that parse templates do not resolve references to
// resources.
//
// An unresolvable reference is an error. Of Fn::If only the chosen branch is resolved.
package template
