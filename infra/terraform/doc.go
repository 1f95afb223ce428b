// Package terraform generates the resources of the Terraform module in deploy/terraform from
// the CDK app, so that the two cannot differ.
//
// It synthesizes one template per option of the module, with placeholders for the values of
// variables. It translates each template to Terraform resources and merges them into one
// module: a difference between the templates becomes a count or a conditional expression.
// A property without a translation is an error.
package terraform

//go:generate env GOWORK=off go run ../cmd/joist-terraform ../../deploy/terraform
