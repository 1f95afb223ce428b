package noticetest

import (
	"fmt"
	"slices"
	"strings"
)

// places adds variants of the account and region (rules 2 and 3).
func (c *corpus) places(b base) {
	id := b.instances[0]
	place := func(account, region, resource string) object {
		return b.event.with("account", quote(account)).with("region", quote(region)).with("resources", quoted(resource))
	}
	const other, far = "210987654321", "eu-west-1"
	c.as(Foreign, b, "of another account", place(other, Region, strings.Replace(arn(id), Account, other, 1)))
	c.as(Foreign, b, "of another region", place(Account, far, strings.Replace(arn(id), Region, far, 1)))
	c.as(Foreign, b, "of another region, with a zone in its ARN", place(Account, far, strings.Replace(spotARN(id), Region, far, 1)))
	c.as(Foreign, b, "of another account, without one in its ARN", place(other, Region, spotARN(id)))
	c.as(Foreign, b, "of China", place(other, "cn-north-1", "arn:aws-cn:ec2:cn-north-1:"+other+":instance/"+id))
	c.as(Foreign, b, "of GovCloud", place(other, "us-gov-west-1", "arn:aws-us-gov:ec2:us-gov-west-1:"+other+":instance/"+id))
	c.as(Foreign, b, "of another account, without resources", place(other, Region, id))
	c.as(Poison, b, "of an account that its ARN is not of", place(other, Region, arn(id)))
	c.as(Poison, b, "of a region that its ARN is not in", place(Account, far, arn(id)))
	c.as(Poison, b, "of a region that its ARN's zone is not in", place(Account, far, spotARN(id)))
	for _, account := range []string{"12345678901", "1234567890123", "123456789o12", " 123456789012", "１２３４５６７８９０１２"} {
		c.add(b, fmt.Sprintf("of account %q", account), b.event.with("account", quote(account)))
	}
	c.add(b, "of an account that is a number", b.event.with("account", Account))
	for _, region := range []string{"US-EAST-2", "us_east_2", " us-east-2", "us-east-2\n", strings.Repeat("r", 33)} {
		c.add(b, fmt.Sprintf("of region %q", region), b.event.with("region", quote(region)))
	}
	c.add(b, "of no account and no region", b.event.without("account").without("region"))
}

// resources adds variants of the event's resources (rule 2).
func (c *corpus) resources(b base) {
	id, other := b.instances[0], Ours[1]
	with := func(want ExpectedResult, name string, resources ...string) {
		c.as(want, b, "resources: "+name, b.event.with("resources", quoted(resources...)))
	}
	with(Act, "none")
	with(Act, "the bare id", id)
	with(Act, "the id, and both of its ARNs", id, arn(id), spotARN(id))
	with(Act, "the same ARN three times", arn(id), arn(id), arn(id))
	with(Act, "a volume", "arn:aws:ec2:us-east-2:123456789012:volume/vol-0123456789abcdef0")
	with(Act, "a group of Auto Scaling", arn(id), "arn:aws:autoscaling:us-east-2:123456789012:autoScalingGroup:x:autoScalingGroupName/y")
	with(Act, "every instance", "arn:aws:ec2:us-east-2:123456789012:instance/*")
	with(Act, "an id in capitals", "arn:aws:ec2:us-east-2:123456789012:instance/"+strings.ToUpper(id))
	with(Act, "a text", "the one in the corner")
	with(Act, "an empty text", "")
	with(Act, "ten kilobytes", strings.Repeat("a", 10_000))
	with(Act, "a thousand volumes", slices.Repeat([]string{"arn:aws:ec2:us-east-2:123456789012:volume/vol-0"}, 1000)...)
	with(Poison, "another's ARN", arn(other))
	with(Poison, "another's ARN with a zone", spotARN(other))
	with(Poison, "another's bare id", other)
	with(Poison, "a stranger's ARN", arn(OtherAccount))
	with(Poison, "its ARN and another's", arn(id), arn(other))
	with(Poison, "a volume and another's ARN", "arn:aws:ec2:us-east-2:123456789012:volume/vol-0123456789abcdef0", arn(other))
	with(Poison, "its ARN in another account", strings.Replace(arn(id), Account, "210987654321", 1))
	with(Poison, "its ARN in another region", strings.Replace(arn(id), Region, "eu-west-1", 1))
	for _, odd := range []named{
		{"numbers and nulls", "[1,null,true,2.5]"}, {"objects", `[{"arn":"x"},{}]`}, {"lists", "[[],[[]]]"},
		{"its ARN among rubbish", list("7", quote(arn(id)), "null", "{}")},
		{"a text without a list", quote(arn(id))}, {"a list in a text", quote(quoted(arn(id)))},
	} {
		c.add(b, "resources: "+odd.name, b.event.with("resources", odd.text))
	}
}

// ids adds variants of the instance's id (rule 1) and owner.
func (c *corpus) ids() {
	id := Ours[0]
	state := c.state("stopping", id)
	for _, b := range []base{c.warnings()[0], c.bases()[2], state, c.reservation(reservationType)} {
		of := func(id string) object {
			return b.inside(b.detail.with("instance-id", quote(id))).with("resources", "[]")
		}
		c.add(b.about(Ours[2]), "an id of the old form", of(Ours[2]))
		c.as(Foreign, b, "a stranger's id", of(OtherAccount))
		for _, digits := range []string{"0a0a0a0a", "0aaaaaaaaaaaaaaaa", strings.Repeat("a", 32)} {
			c.as(NotDelivered, b, fmt.Sprintf("an id that nobody has, of %d digits", len(digits)), of("i-"+digits))
		}
		for _, odd := range []string{
			"i-", "i-0123456", "i-" + strings.Repeat("a", 33), strings.ToUpper(id), "I" + id[1:], id[2:], " " + id, id + " ", id + "\n", id[:18] + "g", "m" + id[1:],
			"i-*", "*", "../" + id, id + "/../" + OtherAccount, id + "," + Ours[1], "i%2D0123456789abcdef0", "i-０１２３４５６７８９", "i-0123456789abcdef0\x00", "' or 1=1 --", arn(id),
			"vol-0123456789abcdef0", "i-012345678 abcdef0", "${jndi:ldap://x}", "i_0123456789abcdef0",
		} {
			c.as(Poison, b, fmt.Sprintf("the id %q", odd), of(odd))
		}
		c.as(Poison, b, "a list of ids", b.inside(b.detail.with("instance-id", quoted(id))))
		c.as(Poison, b, "an id in an object", b.inside(b.detail.with("instance-id", `{"id":`+quote(id)+`}`)))
	}
}

// states adds variants of the instance's state.
func (c *corpus) states() {
	b := c.state("stopping", Ours[0])
	for _, said := range []string{"pending", "running"} {
		c.as(Foreign, b, "the state "+said, b.inside(b.detail.with("state", quote(said))))
	}
	for _, said := range []string{
		"Stopping", "STOPPED", "Shutting-Down", "TERMINATED", "Running", "PENDING", "hibernating", "rebooting", "shutting down", "shutting_down", " stopping", "stopping ",
		"terminate", "stop", "80", "☃",
	} {
		c.as(Poison, b, fmt.Sprintf("the state %q", said), b.inside(b.detail.with("state", quote(said))))
	}
}
