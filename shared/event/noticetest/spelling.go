package noticetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// spelled adds events with another spelling and the same meaning, and events that differ from a known kind only
// slightly.
func (c *corpus) spelled(b base) {
	text := string(b.event.text())
	for _, w := range []struct{ name, body string }{
		{"with indents", indented(text, "", "\t")},
		{"with lines that end as on Windows", strings.ReplaceAll(indented(text, "", " "), "\n", "\r\n")},
		{"with blanks around it", " \r\n\t" + text + "\n\n"},
		{"with an escape in a name", strings.Replace(text, `"source"`, `"s\u006furce"`, 1)},
		{"with an escape in a value", strings.Replace(text, `"aws.ec2"`, `"aws\u002eec2"`, 1)},
		{"with escaped slashes", strings.ReplaceAll(text, "/", `\/`)},
	} {
		c.raw(b, w.name, []byte(w.body), Act)
	}
	backwards := slices.Clone(b.event)
	slices.Reverse(backwards)
	c.add(b, "backwards", backwards)
	sorted := slices.SortedFunc(slices.Values(b.event), func(x, y member) int { return strings.Compare(x.name, y.name) })
	c.add(b, "in order", sorted)
	for _, m := range []member{
		{"x", "null"}, {"x", `{"y":[1,-2.5e3,true,"z"]}`}, {"x", `"\ud83d\ude00 ☃"`}, {"x", `"\ud800"`}, {"x", "1e400"}, {"", "1"},
		{"specversion", `"1.0"`}, {"TopicArn", `"arn:aws:sns:us-east-2:123456789012:x"`}, {"Message", `"x"`}, {"data", "{}"},
		{"replay-name", `"nightly"`}, {"instance-id", quote(OtherAccount)}, {strings.Repeat("n", 1000), "1"},
	} {
		c.add(b, "with "+shortened(quote(m.name)+": "+m.value), append(slices.Clip(b.event), m))
	}
	c.add(b, "with an unknown field twice", append(slices.Clip(b.event), member{"x", "1"}, member{"x", "2"}))
	c.add(b, "with an unknown field of the detail", b.inside(b.detail.plus("instance-type", `"m5.large"`)))
	c.add(b, "with an unknown field of the detail twice", b.inside(append(slices.Clip(b.detail), member{"x", "1"}, member{"x", "2"})))
	c.add(b, "with a detail backwards", b.inside(reversed(b.detail)))
	for _, kind := range []struct {
		source, detailType string
		want               ExpectedResult
	}{
		{"AWS.EC2", spotType, Poison}, {"Aws.Ec2", spotType, Poison}, {"aws.ec2", strings.ToUpper(spotType), Poison},
		{"aws.ec2", "EC2 Spot instance Interruption Warning", Poison}, {"AWS.EC2", strings.ToLower(spotType), Poison},
		{"aws.ec2 ", spotType, Foreign}, {"aws.ec2", spotType + " ", Foreign}, {"aws.ec2", strings.ReplaceAll(spotType, " ", "  "), Foreign},
		{"aws.health", spotType, Foreign}, {"aws.ec2", healthType, Foreign}, {"aws.ec2spot", spotType, Foreign},
		{"com.example", spotType, Foreign}, {"aws.ec2", "EC2 Spot Instance Request Fulfillment", Foreign}, {"aws.autoscaling", spotType, Foreign},
	} {
		e := b.event.with("source", quote(kind.source)).with("detail-type", quote(kind.detailType))
		c.as(kind.want, b, fmt.Sprintf("%q of %q", kind.detailType, kind.source), e)
	}
}

func indented(text, prefix, indent string) string {
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(text), prefix, indent); err != nil {
		panic("noticetest: an event that is no JSON: " + err.Error()) // Unreachable: the builder wrote valid JSON.
	}
	return out.String()
}

func reversed(o object) object {
	out := slices.Clone(o)
	slices.Reverse(out)
	return out
}

// shortened keeps the names of entries readable.
func shortened(s string) string {
	if len(s) <= 60 {
		return s
	}
	return s[:60] + fmt.Sprintf("… (%d bytes)", len(s))
}

// versions adds variants of the envelope's version (rule 2).
func (c *corpus) versions(b base) {
	c.add(b, "version 0 as a number", b.event.with("version", "0"))
	for _, version := range []string{`"1"`, `"2"`, `"0.0"`, `"00"`, `"v0"`, `"2026-11-20"`, "1", "-1", "2026"} {
		c.as(Poison, b, "version "+version, b.event.with("version", version))
	}
}

// noEvents adds bodies that are not events, and events of other kinds.
func (c *corpus) noEvents() {
	b := base{name: "no event", want: Poison}
	for _, body := range []string{
		"", " ", "\n", "null", "true", "42", "-0", "1e999", `""`, `"text"`, "[]", "{}", "[[]]", "[{}]", `{"a":1}`, `{"":""}`, "hello", "{", "}", "[", `"`, "{]", "\x00",
		"\ufeff", "\xff", "<event/>", "<!DOCTYPE html><html></html>", "a=1&b=2", "a,b,c\n1,2,3", "- a: 1\n  b: 2\n", "\x89PNG\r\n\x1a\n", "%7B%7D", "undefined", "NaN",
		`{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"b"}`, `{"AlarmName":"cpu","NewStateValue":"ALARM"}`,
		`{"source":"aws.ec2"}`, `{"detail-type":"` + spotType + `"}`, `{"source":"","detail-type":""}`, `{"source":null,"detail-type":null}`,
		`{"source":["aws.ec2"],"detail-type":["` + spotType + `"]}`, `{"source":"aws.ec2","detail-type":"` + spotType + `"}`,
	} {
		c.raw(b, shortened(quote(body)), []byte(body), Poison)
	}
	b = base{name: "of no interest"}
	for _, kind := range [][2]string{
		{"aws.ec2", "EBS Volume Notification"}, {"aws.ec2", "EC2 Spot Instance Request Fulfillment"}, {"aws.ec2", "EC2 Instance Launch Successful"},
		{"aws.ec2", "AWS API Call via CloudTrail"}, {"aws.health", "AWS Health Abuse Event"}, {"aws.s3", "Object Created"}, {"aws.ecs", "ECS Task State Change"},
		{"aws.autoscaling", "EC2 Instance-terminate Lifecycle Action"}, {"aws.events", "Scheduled Event"}, {"aws.arc-zonal-shift", "Autoshift In Progress"},
		{"com.example.shop", "Order placed"}, {"x", "y"}, {"aws.ec2", "☃"},
	} {
		name := kind[1] + " of " + kind[0]
		c.as(Foreign, b, name, c.event(kind[0], kind[1], "[]", object{{"instance-id", quote(Ours[0])}}))
		c.raw(b, name+", and nothing else", object{{"source", quote(kind[0])}, {"detail-type", quote(kind[1])}}.text(), Foreign)
	}
	for _, inner := range []named{{"an event of no kind", "{}"}, {"an alarm", `{"AlarmName":"cpu"}`}} {
		c.raw(base{name: "in SNS's envelope"}, inner.name, snsOf(inner.text).text(), Poison)
	}
}
