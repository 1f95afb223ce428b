package noticetest

import (
	"fmt"
	"slices"
)

// health adds AWS Health events of other services, categories and resources.
func (c *corpus) health() {
	b := c.maintenance(Ours[:2]...)
	detail := func(want ExpectedResult, name string, d object) { c.as(want, b, name, b.inside(d)) }
	for _, of := range []string{"RDS", "LAMBDA", "ECS", "EC2SPOT", "VPC"} {
		detail(Foreign, "of service "+of, b.detail.with("service", quote(of)))
	}
	for _, of := range []string{"ec2", "Ec2"} {
		detail(Poison, "of service "+of, b.detail.with("service", quote(of)))
	}
	for _, of := range []string{"issue", "accountNotification", "investigation"} {
		detail(Foreign, "of category "+of, b.detail.with("eventTypeCategory", quote(of)))
	}
	for _, of := range []string{"ScheduledChange", "SCHEDULEDCHANGE", "scheduledchange"} {
		detail(Poison, "of category "+of, b.detail.with("eventTypeCategory", quote(of)))
	}
	for _, name := range []string{"page", "totalPages", "eventScopeCode"} {
		detail(Act, "with "+name, b.detail.plus(name, `"1"`))
	}
	c.healthLocations(b)
	detail(Act, "whose work began already", b.detail.with("startTime", `"Wed, 27 Jan 2016 01:43:21 GMT"`))
	c.entities(b)
}

// healthLocations adds variants of the account and the region of a Health event's instances, which its detail names. Its own
// account and region are where AWS delivered it (rule 2).
func (c *corpus) healthLocations(b base) {
	for _, field := range []struct{ name, inner, own, other, resource string }{
		{"region", "eventRegion", Region, "eu-west-1", "arn:aws:ec2:eu-west-1:" + Account + ":instance/" + Ours[0]},
		{"account", "affectedAccount", Account, "210987654321", "arn:aws:ec2:" + Region + ":210987654321:instance/" + Ours[0]},
	} {
		in := func(value string) object { return b.inside(b.detail.plus(field.inner, value)) }
		c.as(Act, b, "with "+field.inner, in(quote(field.own)))
		for _, invalid := range []string{`""`, `7`, `null`, `{}`, quote("☃")} {
			c.as(Act, b, "with an "+field.inner+" of "+invalid, in(invalid))
		}
		c.as(Act, b, "of this "+field.name+", delivered to another one", in(quote(field.own)).with(field.name, quote(field.other)))
		c.as(Foreign, b, "of another "+field.name+", delivered to this one", in(quote(field.other)).with("resources", quoted(field.resource)))
		c.as(Foreign, b, "of another "+field.name+" by id", in(quote(field.other)).with("resources", "[]"))
		c.as(Poison, b, "of this "+field.name+" with a resource of another one", in(quote(field.own)).with("resources", quoted(field.resource)))
	}
}

// entity returns one element of affectedEntities.
func entity(id string) string { return string(object{{"entityValue", quote(id)}}.text()) }

// entities adds variants of the affected entities of a Health event (rule 1).
func (c *corpus) entities(b base) {
	one := b.about(Ours[0])
	affects := func(entities ...string) object { return b.detail.with("affectedEntities", list(entities...)) }
	// If the detail lists an instance, the resources may belong to other pages.
	alone := func(b base, want ExpectedResult, name string, detail object) {
		c.as(want, b, name, b.inside(detail).with("resources", "[]"))
	}
	alone(one, Act, "of one by id", affects(entity(Ours[0])))
	alone(one, Act, "of one by ARN", affects(entity(arn(Ours[0]))))
	alone(one, Act, "of one three times", affects(entity(Ours[0]), entity(arn(Ours[0])), entity(Ours[0])))
	alone(one, Act, "of one and a volume", affects(entity("vol-0123456789abcdef0"), entity(Ours[0])))
	alone(one, Act, "of one and a stranger", affects(entity(OtherAccount), entity(Ours[0])))
	alone(one, Act, "of one and rubbish", affects("null", "7", `"x"`, "[]", "{}", `{"entityValue":7}`, entity(""), entity("☃"), entity(Ours[0])))
	alone(one, Act, "of one in capitals", affects(string(object{{"EntityValue", quote(Ours[0])}}.text())))
	alone(one, Act, "of one with more about it", affects(string(object{{"entityValue", quote(Ours[0])}, {"lastUpdatedTime", `"x"`}, {"status", `"PENDING"`}}.text())))
	strangers := slices.Repeat([]string{entity("vol-0123456789abcdef0")}, 200)
	alone(one, Act, "of one among two hundred volumes", affects(append(strangers, entity(Ours[0]))...))
	c.as(Act, one, "of one, with the resources of another page", b.inside(affects(entity(Ours[0]))).with("resources", quoted(Ours[1], OtherAccount)))
	alone(b, Foreign, "without an entity", affects())
	alone(b, Foreign, "of a stranger", affects(entity(OtherAccount)))
	alone(b, Foreign, "of volumes", affects(entity("vol-0123456789abcdef0"), entity("vol-0123456789abcdef1")))
	alone(b, Foreign, "of rubbish", affects("null", "7", "{}"))
	alone(b, Poison, "of whom it does not say", b.detail.without("affectedEntities"))
	alone(b, Poison, "of a text", b.detail.with("affectedEntities", quote(Ours[0])))
	alone(b, Poison, "of an object", b.detail.with("affectedEntities", entity(Ours[0])))
	alone(b, Poison, "of one with two values", affects(fmt.Sprintf(`{"entityValue":%q,"entityValue":%q}`, Ours[0], Ours[1])))
	for _, in := range []named{
		{"another account", "arn:aws:ec2:" + Region + ":210987654321:instance/" + Ours[0]},
		{"another region", "arn:aws:ec2:eu-west-1:" + Account + ":instance/" + Ours[0]},
	} {
		c.as(Poison, b, "with a resource in "+in.name, b.event.with("resources", quoted(in.text)))
	}
}
