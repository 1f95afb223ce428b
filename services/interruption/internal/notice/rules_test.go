package notice

import (
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// with is a good event with a part of its text replaced.
func with(t *testing.T, event, old, text string) string {
	t.Helper()
	if !strings.Contains(event, old) {
		t.Fatalf("the test replaces nothing: %s", old)
	}
	return strings.Replace(event, old, text, 1)
}

// What is of another form than AWS writes, and still says all that is needed to
// save the pods, is obeyed.
func TestOddWarningsAreObeyed(t *testing.T) {
	good := raw("aws.ec2", spotType, arn, ofOne(`,"instance-action":"terminate"`))
	list := `["` + arn + `"]`
	for name, text := range map[string]string{
		"no version":               with(t, good, `"version":"0",`, ``),
		"a number for a version":   with(t, good, `"version":"0"`, `"version":0`),
		"null for a version":       with(t, good, `"version":"0"`, `"version":null`),
		"no id":                    with(t, good, `"id":"e-1",`, ``),
		"a number for an id":       with(t, good, `"id":"e-1"`, `"id":7`),
		"no account":               with(t, good, `"account":"123456789012",`, ``),
		"an account that is none":  with(t, good, `"account":"123456789012"`, `"account":"me"`),
		"no region":                with(t, good, `"region":"us-east-2",`, ``),
		"an empty region":          with(t, good, `"region":"us-east-2"`, `"region":""`),
		"no resources":             with(t, good, `"resources":`+list+`,`, ``),
		"null for resources":       with(t, good, list, `null`),
		"an empty list":            with(t, good, list, `[]`),
		"odd entries":              with(t, good, list, `[1,{},"vol-1","arn","arn:aws","`+arn+`",[[]]]`),
		"a wildcard":               with(t, good, one+`"]`, `*"]`),
		"a bare id":                with(t, good, arn, one),
		"a zone in the ARN":        with(t, good, "us-east-2:123456789012:", "us-east-2a:"),
		"another partition":        with(t, good, "arn:aws:", "arn:aws-cn:"),
		"a number for an action":   with(t, good, `"terminate"`, `7`),
		"an end that is a number":  with(t, good, `"terminate"`, `"terminate","instance-termination-time":5`),
		"names in another case":    with(t, with(t, good, `"instance-id"`, `"Instance-ID"`), `"source"`, `"SOURCE"`),
		"an escaped name":          with(t, good, `"detail-type"`, `"detail-\u0074ype"`),
		"an escaped id":            with(t, good, `"instance-id":"i-`, `"instance-id":"\u0069-`),
		"an unknown field twice":   with(t, good, `"version"`, `"x":1,"x":2,"version"`),
		"a specversion beside it":  with(t, good, `"version"`, `"specversion":"1.0","version"`),
		"blanks around it":         " \n" + good + "\n",
		"a much longer form":       with(t, good, `"detail":{`, `"detail":{"x":"`+strings.Repeat("x", 200<<10)+`",`),
		"a field of another event": with(t, good, `"instance-action"`, `"state":{},"instance-action"`),
	} {
		t.Run(name, func(t *testing.T) {
			n, err := parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if n.Kind != event.SpotInterruption || len(n.Instances) != 1 || n.Instances[0] != one || !n.Deadline.Equal(said.Add(Warning)) {
				t.Fatalf("%+v", n)
			}
		})
	}
}

// The queue's clock bounds the event's.
func TestNoticedIsNeverLaterThanTheQueueSays(t *testing.T) {
	good := raw("aws.ec2", spotType, arn, ofOne(""))
	for text, want := range map[string]time.Time{
		`"2026-11-20T12:00:00Z"`: said, `"2026-11-20T12:00:01Z"`: taken, `"2026-11-20T12:00:01.000000001Z"`: taken, `"2026-11-20T15:00:00Z"`: taken,
		`"9999-12-31T23:59:59Z"`: taken, `"2026-11-20T09:00:00Z"`: said.Add(-3 * time.Hour), `"2026-11-21T02:00:00.5+14:00"`: said.Add(time.Second / 2),
		`"2026-11-20 12:00:00Z"`: taken, `"2026-11-20T12:00:00"`: taken, `"2026-11-20T12:00:60Z"`: taken, `"yesterday"`: taken, `1795176000`: taken, `null`: taken, `{}`: taken,
	} {
		n, err := parse([]byte(with(t, good, `"2026-11-20T12:00:00Z"`, text)))
		if err != nil || !n.Noticed.Equal(want) || !n.Deadline.Equal(want.Add(Warning)) || n.Noticed.Location() != time.UTC {
			t.Errorf("%s: noticed %s, with the deadline %s (%v)", text, n.Noticed, n.Deadline, err)
		}
	}
}

// A reservation's end counts if it lies between the warning and its deadline.
func TestEndOfAReservation(t *testing.T) {
	for end, want := range map[string]time.Duration{
		"2026-11-20T12:01:00Z": time.Minute, "2026-11-20T18:00:00Z": Warning, "2026-11-20T12:00:00Z": Warning, "1970-01-01T00:00:00Z": Warning, "soon": Warning,
	} {
		n, err := parse([]byte(raw("aws.ec2", reservationType, arn, ofOne(`,"instance-termination-time":"`+end+`"`))))
		if err != nil || n.Deadline.Sub(n.Noticed) != want {
			t.Errorf("%s: the deadline is %s after the notice (%v)", end, n.Deadline.Sub(n.Noticed), err)
		}
	}
}

func TestRefusals(t *testing.T) {
	good := raw("aws.ec2", spotType, arn, ofOne(""))
	state := func(text string) string { return raw("aws.ec2", stateType, arn, ofOne(`,"state":`+text)) }
	const plan = `{"service":"EC2","eventTypeCategory":"scheduledChange"`
	of := func(detail string) string { return raw("aws.health", healthType, "vol-1", detail) }
	health := plan + `,"affectedEntities":[{"entityValue":"` + one + `"}]}`
	for _, tt := range []struct {
		name string
		raw  string
		want fault.Kind
	}{
		{"nothing", "", fault.Poison},
		{"no JSON", "{", fault.Poison},
		{"cut in half", good[:len(good)/2], fault.Poison},
		{"no object", "[" + good + "]", fault.Poison},
		{"two values", good + good, fault.Poison},
		{"too deep", with(t, good, `"detail":`, `"x":`+strings.Repeat("[", 50)+strings.Repeat("]", 50)+`,"detail":`), fault.Poison},
		{"too large", with(t, good, `"detail":{`, `"detail":{"x":"`+strings.Repeat("x", event.MaxEnvelope)+`",`), fault.Poison},
		{"no UTF-8", with(t, good, "e-1", "\xff"), fault.Poison},
		{"two byte order marks", "\ufeff\ufeff" + good, fault.Poison},
		{"an empty object", "{}", fault.Poison},
		{"base64", "eyJ2ZXJzaW9uIjoiMCJ9", fault.Poison},
		{"no source", with(t, good, `"source":"aws.ec2",`, ``), fault.Poison},
		{"a number for a source", with(t, good, `"source":"aws.ec2"`, `"source":7`), fault.Poison},
		{"no detail-type", with(t, good, `"detail-type":"`+spotType+`",`, ``), fault.Poison},
		{"a known field twice", with(t, good, `"id"`, `"account":"123456789012","id"`), fault.Poison},
		{"a known field twice, spelled twice", with(t, good, `"id"`, `"Account":"123456789012","id"`), fault.Poison},
		{"an id twice", with(t, good, `"instance-id"`, `"instance-id":"`+one+`","instance-id"`), fault.Poison},
		{"a source in another case", with(t, good, "aws.ec2", "AWS.EC2"), fault.Poison},
		{"a detail-type in another case", with(t, good, spotType, strings.ToLower(spotType)), fault.Poison},
		{"another version", with(t, good, `"version":"0"`, `"version":"1"`), fault.Poison},
		{"another number for a version", with(t, good, `"version":"0"`, `"version":1`), fault.Poison},
		{"another account than the ARN's", with(t, good, `"account":"123456789012"`, `"account":"123456789013"`), fault.Poison},
		{"another region than the ARN's", with(t, good, `"region":"us-east-2"`, `"region":"us-east-1"`), fault.Poison},
		{"a zone of another region", with(t, good, "us-east-2:123456789012:", "eu-west-1a:"), fault.Poison},
		{"another instance than the ARN's", with(t, good, `"instance-id":"`+one, `"instance-id":"`+two), fault.Poison},
		{"another instance among the resources", with(t, good, `["`, `["`+two+`","`), fault.Poison},
		{"an instance that is none", with(t, good, `"instance-id":"`+one, `"instance-id":"*`), fault.Poison},
		{"an instance in capitals", with(t, good, `"instance-id":"`+one, `"instance-id":"`+strings.ToUpper(one)), fault.Poison},
		{"too long an instance", with(t, good, `"instance-id":"i-`, `"instance-id":"i-0123456789abcdef0`), fault.Poison},
		{"no instance", with(t, good, `{"instance-id":"`+one+`"}`, `{}`), fault.Poison},
		{"no detail", with(t, good, `{"instance-id":"`+one+`"}`, `7`), fault.Poison},
		{"a detail in a string", with(t, good, `{"instance-id":"`+one+`"}`, `"{\"instance-id\":\"`+one+`\"}"`), fault.Poison},
		{"no state", raw("aws.ec2", stateType, arn, ofOne("")), fault.Poison},
		{"a number for a state", state("7"), fault.Poison},
		{"an unknown state", state(`"asleep"`), fault.Poison},
		{"a state in another case", state(`"Stopped"`), fault.Poison},
		{"health without a service", of(`{"eventTypeCategory":"scheduledChange"}`), fault.Poison},
		{"health without a category", of(`{"service":"EC2"}`), fault.Poison},
		{"a category in another case", of(strings.Replace(health, "scheduled", "Scheduled", 1)), fault.Poison},
		{"health without entities", of(plan + `}`), fault.Poison},
		{"health with an entity twice in one", of(plan + `,"affectedEntities":[{"entityValue":"a","entityValue":"b"}]}`), fault.Poison},
		{"health of an instance elsewhere", raw("aws.health", healthType, strings.Replace(arn, "us-east-2", "eu-west-1", 1), health), fault.Poison},
		{"an envelope", `{"specversion":"1.0","source":"joist/scheduler"}`, fault.Poison},
		{"unknown kind", raw("aws.ec2", "EBS Volume Notification", arn, `{}`), fault.Foreign},
		{"unknown kind without anything else", `{"source":"aws.ec2","detail-type":"EBS Volume Notification"}`, fault.Foreign},
		{"unknown source", raw("aws.s3", spotType, arn, ofOne("")), fault.Foreign},
		{"an instance that starts", state(`"running"`), fault.Foreign},
		{"health of another service", of(strings.Replace(health, "EC2", "RDS", 1)), fault.Foreign},
		{"health of another category", of(`{"service":"EC2","eventTypeCategory":"issue"}`), fault.Foreign},
		{"health of a volume", of(plan + `,"affectedEntities":[{"entityValue":"vol-1"}]}`), fault.Foreign},
		{"health of nobody", of(plan + `,"affectedEntities":[]}`), fault.Foreign},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parse([]byte(tt.raw)); fault.KindOf(err) != tt.want {
				t.Fatalf("got %s (%v), want %s", fault.KindOf(err), err, tt.want)
			}
		})
	}
}

// Health's list of entities counts, and its resources where there is none.
func TestWhomHealthMeans(t *testing.T) {
	const plan = `{"service":"EC2","eventTypeCategory":"scheduledChange"`
	for _, tt := range []struct{ name, resource, detail, want string }{
		{"another page's resource", two, plan + `,"affectedEntities":[{"entityValue":"` + one + `"}]}`, one},
		{"entities of an odd type", one, plan + `,"affectedEntities":7}`, one},
		{"no entities", arn, plan + `}`, one},
		{"some entities of an odd type", two, plan + `,"affectedEntities":[7,{"entityValue":[]},null,{"entityValue":"` + one + `"},{"entityValue":"` + two + `"}]}`, one + " " + two},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := parse([]byte(raw("aws.health", healthType, tt.resource, tt.detail)))
			if got := strings.Join(n.Instances, " "); err != nil || got != tt.want {
				t.Fatalf("got %q (%v), want %q", got, err, tt.want)
			}
		})
	}
}

func TestHintOfSNS(t *testing.T) {
	err := new(Document).Open([]byte(`{"Type":"Notification","TopicArn":"arn:aws:sns:us-east-2:123456789012:t","Message":"{}"}`))
	if !strings.Contains(fault.HintOf(err), "the rule") {
		t.Fatalf("%v", err)
	}
}

func TestShortKeepsCharactersWhole(t *testing.T) {
	got := short(strings.Repeat("x", shortMax-1) + "€uro")
	if got != strings.Repeat("x", shortMax-1)+"…" {
		t.Fatalf("%q", got)
	}
}
