package catalog

import "strings"

// partitions are AWS's partitions by the prefix of their regions' names.
var partitions = []struct{ prefix, name string }{
	{"cn-", "aws-cn"},
	{"us-gov-", "aws-us-gov"},
	{"us-isob-", "aws-iso-b"},
	{"us-isof-", "aws-iso-f"},
	{"us-iso-", "aws-iso"},
	{"eu-isoe-", "aws-iso-e"},
	{"eusc-", "aws-eusc"},
}

// Partition returns the partition of a region: the second part of its ARNs.
func Partition(region string) string {
	for _, p := range partitions {
		if strings.HasPrefix(region, p.prefix) {
			return p.name
		}
	}
	return "aws"
}

// HasPriceList reports whether AWS's price list covers the region: GovCloud and the isolated partitions have no
// endpoint for it.
func HasPriceList(region string) bool {
	partition := Partition(region)
	return partition == "aws" || partition == "aws-cn"
}
