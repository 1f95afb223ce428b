// Package guard stands before the fake AWS and asks of every request what IAM asks:
// who calls, which actions it takes on which resources, and under which conditions; and
// judges it by the policies of the deployment's template.
//
// So the services of the end-to-end tests run under the very rights that the CDK app
// gives them, and a right that is missing fails the tests, as it would fail a cluster.
// Which actions, resources and condition keys a call has is AWS's service authorization
// reference (https://docs.aws.amazon.com/service-authorization/latest/reference/). A
// request that this package cannot read is denied.
package guard
