package peers

import "strings"

// difference is a behaviour in which a peer is known not to be like AWS.
type difference struct {
	test, behaviour string
	// says are parts of what the behaviour fails with: each message has one.
	says []string
	// reason is what the peer does, and what AWS does instead.
	reason string
}

// full is the name under which the testing package knows the behaviour.
func (d difference) full() string { return d.test + "/" + strings.ReplaceAll(d.behaviour, " ", "_") }

var differences = []difference{
	{"TestElasticMQ", "hide refuses a stale receipt", []string{`want ["missing"]`, "received 0 messages, want 1"},
		"hides again what became visible; SQS documents MessageNotInflight, and is seen to do nothing"},
	{"TestElasticMQ", "hide refuses a deleted message", []string{"com.amazonaws.sqs#ReceiptHandleIsInvalid"},
		"says com.amazonaws.sqs#… in X-Amzn-Query-Error, where SQS says the query protocol's bare code"},
	{"TestElasticMQ", "a missing queue is told", []string{"com.amazonaws.sqs#QueueDoesNotExist"},
		"says com.amazonaws.sqs#… in X-Amzn-Query-Error, where SQS says the query protocol's bare code"},
	{"TestMotoQueues", "hide refuses a stale receipt", []string{`want ["missing"]`, "received 0 messages, want 1"},
		"hides again what became visible; SQS documents MessageNotInflight, and is seen to do nothing"},
	{"TestMotoQueues", "delete with a stale receipt keeps", []string{"ReceiptHandleIsInvalid"},
		"deletes by any receipt of the message; SQS calls it likely that it does not, and Joist never relies on it"},
	{"TestMotoQueues", "a target gets its InputPath", []string{"the queue got {"},
		"sends the whole event; EventBridge sends the part that InputPath names"},

	{"TestMotoCloud", "fleet/repeats the answer under the same token", []string{"the second answer differs", "4 instances carry the tag, want 2"},
		"ignores ClientToken"},
	{"TestMotoCloud", "fleet/refuses another body under the same token", []string{`want "conflict"`},
		"ignores ClientToken; EC2 answers IdempotentParameterMismatch"},
	{"TestMotoCloud", "fleet/answers a missing template inside", []string{"api error InvalidLaunchTemplateName.NotFoundException"},
		"refuses the call; EC2 answers an instant fleet with the same code among its errors"},
	{"TestMotoCloud", "fleet/refuses a count of none", []string{`want "invalid"`},
		"takes a fleet of none"},
	{"TestMotoCloud", "template/is deleted twice", []string{"MissingParameter"},
		"says MissingParameter of a name that it does not know; EC2 says InvalidLaunchTemplateName.NotFoundException"},
	{"TestMotoCloud", "template/refuses a malformed name", []string{`want "invalid"`},
		"takes a name of one letter; EC2 wants three"},
	{"TestMotoCloud", "instance/is not tagged when unknown", []string{`want "missing"`},
		"tags any id; EC2 answers InvalidInstanceID.NotFound"},
	{"TestMotoCloud", "profile/is deleted twice", []string{"an instance with the profile starts: true"},
		"launches with a profile that does not exist"},
	{"TestMotoCloud", "profile/is listed by its path", []string{"below /karpenter/test/: ", "below /joist/nowhere/: "},
		"ignores PathPrefix"},
	{"TestMotoCloud", "profile/is told by its instances", []string{"Profile: Tags:"},
		"launches a fleet without the profile of its template; EC2 tells the profile's ARN with the instance"},
	{"TestMotoCloud", "rehearsal/finds what is missing", []string{`want "missing"`},
		"says DryRunOperation before it reads the template; EC2 documents the check of permissions alone, and is seen to check the input too"},
	{"TestMotoCloud", "market/prices on-demand", []string{"operation error Pricing: GetProducts, exceeded maximum number of attempts, 1, https response error StatusCode: 500"},
		"has no price list, and fails with a page of HTML"},
	{"TestMotoCloud", "market/knows no shift of a quiet cluster", []string{"operation error ARC Zonal Shift: GetManagedResource, exceeded maximum number of attempts, 1, https response error StatusCode: 500"},
		"has no zonal shifts, and fails with a page of HTML; ARC documents ResourceNotFoundException for what is not found"},

	{"TestRuler", "refusal more than one", []string{"no match; we say refused"},
		"reads the first JSON value and no further"},
	{"TestRuler", "refusal not between", []string{"no match; we say refused"},
		"compares any number; EventBridge documents -5e9 to 5e9"},
	{"TestRuler", "corner a larger number than may be compared", []string{`we say "no match", event-ruler says "match"`},
		"compares any number; EventBridge documents -5e9 to 5e9"},
	{"TestRuler", "corner the seventh decimal", []string{`we say "match", event-ruler says "no match"`},
		"tells numbers apart that differ in the seventh decimal; EventBridge documents six"},
	{"TestRuler", "refusal more than 1000 combinations", []string{"no match; we say refused"},
		"has no limit; EventBridge documents 1,000"},
	{"TestRuler", "refusal a: the field stands both", []string{"we say refused"},
		"takes what is written last alone; we refuse so ambiguous a pattern"},
	{"TestRuler", "refusal a.b: the field stands both", []string{"we say refused"},
		"takes what is written last alone; we refuse so ambiguous a pattern"},
	{"TestRuler", "corner a wildcard before any case", []string{`we say "no match", event-ruler says "match"`},
		"finds aA by *a*a or by a in any case, though neither alone does, and not the other way around: its own mistake"},
	{"TestRuler", "corner alternatives that share a value", []string{`we say "match", event-ruler says "no match"`},
		"misses c of y where the first of two alternatives for c has a value of the second: its own mistake"},
	{"TestRuler", "corner letters that fold to two", []string{`we say "no match", event-ruler says "match"`},
		"folds ß to SS; we fold letter by letter, which is the same for ASCII"},
	{"TestRuler", "corner the last of two members of an event", []string{`we say "no match", event-ruler says "match"`},
		"reads both of two members of one name, which no AWS service sends; we read the last"},
}
