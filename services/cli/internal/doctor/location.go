package doctor

import "strings"

// Location is the partition, account and region of a cluster. In the zero value they are
// unknown.
type Location struct{ Partition, Account, Region string }

// resourceARN returns the ARN of a resource in the account and region.
func (p Location) resourceARN(service, resource string) string {
	return strings.Join([]string{"arn", p.Partition, service, p.Region, p.Account, resource}, ":")
}

// iamARN returns the ARN of an IAM resource, which has no region.
func (p Location) iamARN(resource string) string {
	return strings.Join([]string{"arn", p.Partition, "iam", "", p.Account, resource}, ":")
}

// RoleARN returns the ARN of a role, with a placeholder if the account is unknown.
func (p Location) RoleARN(name string) string {
	if p.Account == "" {
		p = Location{Partition: "aws", Account: "<account>"}
	}
	return p.iamARN("role/" + name)
}

// providerARN returns the ARN of an OIDC provider.
func (p Location) providerARN(issuer string) string {
	return strings.Replace(p.RoleARN(""), "role/", "oidc-provider/"+issuer, 1)
}
