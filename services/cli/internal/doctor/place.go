package doctor

import "strings"

// Place is where in AWS the cluster is. The zero value is an account that is not known.
type Place struct{ Partition, Account, Region string }

// arn is the name of something of the account and region.
func (p Place) arn(service, resource string) string {
	return strings.Join([]string{"arn", p.Partition, service, p.Region, p.Account, resource}, ":")
}

// iam is the name of something of IAM's, which knows no regions.
func (p Place) iam(resource string) string {
	return strings.Join([]string{"arn", p.Partition, "iam", "", p.Account, resource}, ":")
}

// Role is a role's ARN, with what a person is to fill in where the account is not known.
func (p Place) Role(name string) string {
	if p.Account == "" {
		p = Place{Partition: "aws", Account: "<account>"}
	}
	return p.iam("role/" + name)
}

// provider is the ARN of an OIDC provider.
func (p Place) provider(issuer string) string {
	return strings.Replace(p.Role(""), "role/", "oidc-provider/"+issuer, 1)
}
