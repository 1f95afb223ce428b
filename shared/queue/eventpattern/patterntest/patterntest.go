// Package patterntest is a table of EventBridge event patterns and results, for tests of any implementation.
package patterntest

import "strings"

// Notice is an event from EC2, with values of every type in its detail.
const Notice = `{
  "version": "0", "id": "7bf73129", "detail-type": "EC2 Spot Instance Interruption Warning",
  "source": "aws.ec2", "account": "123456789012", "time": "2026-11-20T10:00:00Z", "region": "eu-west-1",
  "resources": ["arn:aws:ec2:eu-west-1:123456789012:instance/i-0a", "arn:aws:ec2:eu-west-1:123456789012:instance/i-0b"],
  "detail": {
    "instance-id": "i-0a", "instance-action": "terminate", "count": 5, "limit": 301.80, "ok": true, "none": null,
    "empty": "", "list": [], "ip": "10.0.0.33", "ip6": "2001:db8::1", "path": "/opt/lib/a*b.png", "back": "a\\b",
    "tags": [{"key": "owner", "value": "joist"}, {"key": "env", "value": "prod"}],
    "nested": [[{"deep": [1, 2]}], [{"deep": [3]}]],
    "a.b": "dotted"
  }
}`

// Case is a pattern, and whether it matches Notice.
type Case struct {
	Name, Pattern string
	Want          bool
}

// Cases cover every operator, with and without a match.
var Cases = []Case{
	{"source", `{"source": ["aws.ec2"]}`, true},
	{"other source", `{"source": ["joist/planner"]}`, false},
	{"any of a list", `{"source": ["joist/planner", "aws.ec2"]}`, true},
	{"all fields", `{"source": ["aws.ec2"], "region": ["eu-west-1"]}`, true},
	{"one of two fields differs", `{"source": ["aws.ec2"], "region": ["eu-west-2"]}`, false},
	{"field in detail", `{"detail": {"instance-action": ["terminate"]}}`, true},
	{"case is significant", `{"detail": {"instance-action": ["Terminate"]}}`, false},
	{"missing field", `{"detail": {"gone": ["x"]}}`, false},
	{"array in the event", `{"resources": ["arn:aws:ec2:eu-west-1:123456789012:instance/i-0b"]}`, true},
	{"number", `{"detail": {"count": [5]}}`, true},
	{"number in another notation", `{"detail": {"count": [5.0]}}`, true},
	{"number is not a string", `{"detail": {"count": ["5"]}}`, false},
	{"string is not a number", `{"account": [123456789012]}`, false},
	{"true", `{"detail": {"ok": [true]}}`, true},
	{"true is not false", `{"detail": {"ok": [false]}}`, false},
	{"null", `{"detail": {"none": [null]}}`, true},
	{"null is not absent", `{"detail": {"gone": [null]}}`, false},
	{"empty string", `{"detail": {"empty": [""]}}`, true},
	{"object is not a leaf", `{"detail": ["x"]}`, false},
	{"dots join names", `{"detail": {"a": {"b": ["dotted"]}}}`, true},

	{"prefix", `{"time": [{"prefix": "2026-11-20"}]}`, true},
	{"not the prefix", `{"time": [{"prefix": "11-20"}]}`, false},
	{"prefix ignoring case", `{"source": [{"prefix": {"equals-ignore-case": "AWS."}}]}`, true},
	{"prefix of a number", `{"detail": {"count": [{"prefix": "5"}]}}`, false},
	{"suffix", `{"detail": {"path": [{"suffix": ".png"}]}}`, true},
	{"not the suffix", `{"detail": {"path": [{"suffix": ".PNG"}]}}`, false},
	{"suffix ignoring case", `{"detail": {"path": [{"suffix": {"equals-ignore-case": ".PNG"}}]}}`, true},
	{"ignoring case", `{"source": [{"equals-ignore-case": "AWS.EC2"}]}`, true},
	{"ignoring case, other text", `{"source": [{"equals-ignore-case": "AWS.EC3"}]}`, false},

	{"wildcard", `{"source": [{"wildcard": "aws.*"}]}`, true},
	{"wildcard in the middle", `{"detail": {"path": [{"wildcard": "*/lib/*"}]}}`, true},
	{"wildcard matches an empty string", `{"source": [{"wildcard": "*aws.ec2*"}]}`, true},
	{"wildcard ends do not overlap", `{"source": [{"wildcard": "aws.ec*ec2"}]}`, false},
	{"escaped wildcard", `{"detail": {"path": [{"wildcard": "*a\\*b*"}]}}`, true},
	{"escaped wildcard without a star in the text", `{"source": [{"wildcard": "aws\\*ec2"}]}`, false},
	{"escaped backslash", `{"detail": {"back": [{"wildcard": "a\\\\*"}]}}`, true},

	{"anything but a string", `{"source": [{"anything-but": "joist"}]}`, true},
	{"anything but this string", `{"source": [{"anything-but": "aws.ec2"}]}`, false},
	{"anything but strings", `{"source": [{"anything-but": ["joist", "aws.ec2"]}]}`, false},
	{"anything but a number", `{"detail": {"count": [{"anything-but": 4}]}}`, true},
	{"anything but these numbers", `{"detail": {"count": [{"anything-but": [4, 5]}]}}`, false},
	{"anything but needs the field", `{"detail": {"gone": [{"anything-but": "x"}]}}`, false},
	{"anything but one of an array", `{"resources": [{"anything-but": "arn:aws:ec2:eu-west-1:123456789012:instance/i-0a"}]}`, true},
	{"anything but a prefix", `{"source": [{"anything-but": {"prefix": "aws."}}]}`, false},
	{"anything but prefixes", `{"source": [{"anything-but": {"prefix": ["joist/", "x"]}}]}`, true},
	{"anything but a suffix", `{"detail": {"path": [{"anything-but": {"suffix": ".png"}}]}}`, false},
	{"anything but suffixes", `{"detail": {"path": [{"anything-but": {"suffix": [".gif", ".jpg"]}}]}}`, true},
	{"anything but, ignoring case", `{"source": [{"anything-but": {"equals-ignore-case": "AWS.EC2"}}]}`, false},
	{"anything but several, ignoring case", `{"source": [{"anything-but": {"equals-ignore-case": ["A", "B"]}}]}`, true},
	{"anything but a wildcard", `{"detail": {"path": [{"anything-but": {"wildcard": "*/lib/*"}}]}}`, false},
	{"anything but wildcards", `{"detail": {"path": [{"anything-but": {"wildcard": ["*/bin/*", "*/src/*"]}}]}}`, true},

	{"numeric equal", `{"detail": {"limit": [{"numeric": ["=", 3.018e2]}]}}`, true},
	{"numeric range", `{"detail": {"count": [{"numeric": [">", 0, "<=", 5]}]}}`, true},
	{"numeric open end", `{"detail": {"count": [{"numeric": [">=", 0, "<", 5]}]}}`, false},
	{"numeric of a string", `{"account": [{"numeric": [">", 0]}]}`, false},
	{"exists", `{"detail": {"none": [{"exists": true}]}}`, true},
	{"exists, but the field is absent", `{"detail": {"gone": [{"exists": true}]}}`, false},
	{"absent", `{"detail": {"gone": [{"exists": false}]}}`, true},
	{"absent, but the field exists", `{"detail": {"ok": [{"exists": false}]}}`, false},
	{"absent because it is not a leaf", `{"detail": [{"exists": false}]}`, true},
	{"absent or a value", `{"detail": {"ok": [{"exists": false}, true]}}`, true},
	{"an empty array has no leaf", `{"detail": {"list": [{"exists": true}]}}`, false},
	{"absent in one element of an array", `{"detail": {"tags": {"key": [{"exists": false}]}}}`, false},
	{"cidr", `{"detail": {"ip": [{"cidr": "10.0.0.0/24"}]}}`, true},
	{"address outside of the cidr", `{"detail": {"ip": [{"cidr": "10.0.1.0/24"}]}}`, false},
	{"cidr of version 6", `{"detail": {"ip6": [{"cidr": "2001:db8::/32"}]}}`, true},
	{"cidr and text that is not an address", `{"source": [{"cidr": "0.0.0.0/0"}]}`, false},

	{"or, first", `{"$or": [{"source": ["aws.ec2"]}, {"region": ["x"]}]}`, true},
	{"or, second", `{"$or": [{"source": ["x"]}, {"region": ["eu-west-1"]}]}`, true},
	{"or, none", `{"$or": [{"source": ["x"]}, {"region": ["x"]}]}`, false},
	{"or and a field", `{"account": ["x"], "$or": [{"source": ["aws.ec2"]}, {"region": ["x"]}]}`, false},
	{"or inside", `{"detail": {"$or": [{"count": [1]}, {"ok": [true], "$or": [{"empty": ["x"]}, {"none": [null]}]}]}}`, true},
	{"or as a name", `{"$or": ["x"]}`, false},

	{"element of an array", `{"detail": {"tags": {"key": ["owner"], "value": ["joist"]}}}`, true},
	{"fields of two elements", `{"detail": {"tags": {"key": ["owner"], "value": ["prod"]}}}`, false},
	{"nested arrays", `{"detail": {"nested": {"deep": [2]}}}`, true},
	{"nested arrays without the value", `{"detail": {"nested": {"deep": [4]}}}`, false},
}

// Refusal is an invalid pattern and a part of this package's error.
type Refusal struct{ Pattern, Says string }

// Refusals are the possible mistakes in a pattern.
var Refusals = []Refusal{
	{``, "reading JSON"},
	{`{"a":["x"]} {}`, "more than one"},
	{`["a"]`, "an array, not an object"},
	{`{}`, "empty object"},
	{`{"detail": {}}`, "detail: an empty object"},
	{`{"a": []}`, "empty array"},
	{`{"a": "x"}`, `a: "x" must be in`},
	{`{"a": [["x"]]}`, "an array must be a string"},
	{`{"a": [{}]}`, "exactly one operator"},
	{`{"a": [{"prefix": "x", "suffix": "y"}]}`, "exactly one operator"},
	{`{"a": [{"contains": "x"}]}`, `unknown operator "contains"`},
	{`{"a": [{"exactly": 1}]}`, "exactly: 1 must be a string"},
	{`{"a": [{"prefix": 1}]}`, "prefix: 1 must be a string"},
	{`{"a": [{"prefix": {"wildcard": "x"}}]}`, "is not allowed here"},
	{`{"a": [{"equals-ignore-case": ["x"]}]}`, "must be a string"},
	{`{"a": [{"wildcard": "a**"}]}`, "two * in a row"},
	{`{"a": [{"wildcard": "a\\b"}]}`, "backslash"},
	{`{"a": [{"wildcard": "a\\"}]}`, "backslash"},
	{`{"a": [{"anything-but": []}]}`, "only strings or only numbers"},
	{`{"a": [{"anything-but": ["x", 1]}]}`, "only strings or only numbers"},
	{`{"a": [{"anything-but": true}]}`, "must be a string or a number"},
	{`{"a": [{"anything-but": {"prefix": ""}}]}`, "non-empty"},
	{`{"a": [{"anything-but": {"suffix": []}}]}`, "the list is empty"},
	{`{"a": [{"anything-but": {"cidr": "10.0.0.0/8"}}]}`, "is not allowed here"},
	{`{"a": [{"numeric": []}]}`, "one or two comparisons"},
	{`{"a": [{"numeric": ["~", 1]}]}`, "unknown comparison"},
	{`{"a": [{"numeric": ["<", "1"]}]}`, "must be a number"},
	{`{"a": [{"numeric": ["<", 5000000001]}]}`, "not between"},
	{`{"a": [{"numeric": ["<", 1, ">", 0]}]}`, "lower bound followed by"},
	{`{"a": [{"numeric": [">", 1, "<", 1]}]}`, "not below"},
	{`{"a": [{"exists": "yes"}]}`, "true or false"},
	{`{"a": [{"cidr": "10.0.0.0"}]}`, "no '/'"},
	{`{"a": [{"cidr": "10.0.0.1/32"}]}`, "two or more addresses"},
	{`{"a": [{"cidr": "2001:db8::1/128"}]}`, "two or more addresses"},
	{`{"a": [{"cidr": "::ffff:10.0.0.0/104"}]}`, "not IPv4-mapped"},
	{`{"$or": [{"a": ["x"]}, {}]}`, "empty object"},
	{`{"$or": [{"a": ["x"]}, {"b": ["y"]}], "a": ["z"]}`, "a: the field is both"},
	{`{"a.b": ["x"], "a": {"b": ["x"]}}`, "a.b: the field is both"},
	{strings.Repeat(`{"$or": [{"a":[1]},{"b":[2]}], "x": `, 10) + `["y"]` + strings.Repeat("}", 10), "more than 1000 combinations"},
}
