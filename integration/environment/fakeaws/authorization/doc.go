// Package authorization authorizes every request to the fake AWS as IAM would: it determines the
// caller, the actions, the resources and the condition keys, and evaluates the policies
// of the deployment's template.
//
// So the services of the end-to-end tests run with exactly the permissions that the CDK
// app gives them, and a missing permission fails the tests. The actions, resources and
// condition keys of each call follow AWS's Service Authorization Reference
// (https://docs.aws.amazon.com/service-authorization/latest/reference/). A request that
// this package cannot parse is denied.
package authorization
