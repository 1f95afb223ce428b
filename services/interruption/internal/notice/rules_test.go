package notice

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// replaceText replaces a part of an event.
func replaceText(t *testing.T, event, old, text string) string {
	t.Helper()
	if !strings.Contains(event, old) {
		t.Fatalf("the event does not contain %s", old)
	}
	return strings.Replace(event, old, text, 1)
}

// Warnings that differ from the form of AWS but have the required fields become notices.
func TestUnusualWarningsAreRead(t *testing.T) {
	good := rawEvent("aws.ec2", spotType, firstARN, instanceDetail(`,"instance-action":"terminate"`))
	list := `["` + firstARN + `"]`
	for name, text := range map[string]string{
		"no version":                replaceText(t, good, `"version":"0",`, ``),
		"a number for a version":    replaceText(t, good, `"version":"0"`, `"version":0`),
		"null for a version":        replaceText(t, good, `"version":"0"`, `"version":null`),
		"no id":                     replaceText(t, good, `"id":"e-1",`, ``),
		"a number for an id":        replaceText(t, good, `"id":"e-1"`, `"id":7`),
		"no account":                replaceText(t, good, `"account":"123456789012",`, ``),
		"an invalid account":        replaceText(t, good, `"account":"123456789012"`, `"account":"me"`),
		"no region":                 replaceText(t, good, `"region":"us-east-2",`, ``),
		"an empty region":           replaceText(t, good, `"region":"us-east-2"`, `"region":""`),
		"no resources":              replaceText(t, good, `"resources":`+list+`,`, ``),
		"null for resources":        replaceText(t, good, list, `null`),
		"an empty list":             replaceText(t, good, list, `[]`),
		"invalid entries":           replaceText(t, good, list, `[1,{},"vol-1","arn","arn:aws","`+firstARN+`",[[]]]`),
		"a wildcard":                replaceText(t, good, firstID+`"]`, `*"]`),
		"a bare id":                 replaceText(t, good, firstARN, firstID),
		"no account in the ARN":     replaceText(t, good, "us-east-2:123456789012:", "us-east-2::"),
		"no region in the ARN":      replaceText(t, good, "us-east-2:123456789012:", ":123456789012:"),
		"an ARN without arn":        replaceText(t, good, `["`, `["aws:ec2:us-east-2:123456789012:instance/`+secondID+`","`),
		"an ARN of another service": replaceText(t, good, `["`, `["arn:aws:rds:us-east-2:123456789012:instance/`+secondID+`","`),
		"a zone in the ARN":         replaceText(t, good, "us-east-2:123456789012:", "us-east-2a:"),
		"another partition":         replaceText(t, good, "arn:aws:", "arn:aws-cn:"),
		"a number for an action":    replaceText(t, good, `"terminate"`, `7`),
		"an end that is a number":   replaceText(t, good, `"terminate"`, `"terminate","instance-termination-time":5`),
		"names in another case":     replaceText(t, replaceText(t, good, `"instance-id"`, `"Instance-ID"`), `"source"`, `"SOURCE"`),
		"an escaped name":           replaceText(t, good, `"detail-type"`, `"detail-\u0074ype"`),
		"an escaped id":             replaceText(t, good, `"instance-id":"i-`, `"instance-id":"\u0069-`),
		"an unknown field twice":    replaceText(t, good, `"version"`, `"x":1,"x":2,"version"`),
		"a name with a long s":      replaceText(t, good, `"version"`, `"ſource":"x","version"`),
		"an additional specversion": replaceText(t, good, `"version"`, `"specversion":"1.0","version"`),
		"blanks around it":          " \n" + good + "\n",
		"a much longer form":        replaceText(t, good, `"detail":{`, `"detail":{"x":"`+strings.Repeat("x", 200<<10)+`",`),
		"a field of another event":  replaceText(t, good, `"instance-action"`, `"state":{},"instance-action"`),
	} {
		t.Run(name, func(t *testing.T) {
			n, err := parseEvent([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if n.Kind != event.SpotInterruption || len(n.Instances) != 1 || n.Instances[0] != firstID || !n.Deadline.Equal(eventTime.Add(WarningPeriod)) {
				t.Fatalf("%+v", n)
			}
		})
	}
}

// The SentTimestamp limits the time of the event.
func TestNoticedIsBoundedBySentTimestamp(t *testing.T) {
	good := rawEvent("aws.ec2", spotType, firstARN, instanceDetail(""))
	for text, want := range map[string]time.Time{
		`"2026-11-20T12:00:00Z"`: eventTime, `"2026-11-20T12:00:01Z"`: sentTime, `"2026-11-20T12:00:01.000000001Z"`: sentTime, `"2026-11-20T15:00:00Z"`: sentTime,
		`"2026-10-20T12:00:01Z"`: sentTime.Add(-maxAge), `"2026-10-20T12:00:00.999999999Z"`: sentTime,
		`"9999-12-31T23:59:59Z"`: sentTime, `"2026-11-20T09:00:00Z"`: eventTime.Add(-3 * time.Hour), `"2026-11-21T02:00:00.5+14:00"`: eventTime.Add(time.Second / 2),
		`"2026-11-20 12:00:00Z"`: sentTime, `"2026-11-20T12:00:00"`: sentTime, `"2026-11-20T12:00:60Z"`: sentTime, `"yesterday"`: sentTime, `1795176000`: sentTime, `null`: sentTime, `{}`: sentTime,
	} {
		n, err := parseEvent([]byte(replaceText(t, good, `"2026-11-20T12:00:00Z"`, text)))
		if err != nil || !n.Noticed.Equal(want) || !n.Deadline.Equal(want.Add(WarningPeriod)) || n.Noticed.Location() != time.UTC {
			t.Errorf("%s: noticed %s, with the deadline %s (%v)", text, n.Noticed, n.Deadline, err)
		}
	}
}

// The termination time of a reservation is used if it is within the warning period.
func TestReservationDeadline(t *testing.T) {
	for end, want := range map[string]time.Duration{
		"2026-11-20T12:01:00Z": time.Minute, "2026-11-20T18:00:00Z": WarningPeriod, "2026-11-20T12:00:00Z": WarningPeriod, "1970-01-01T00:00:00Z": WarningPeriod, "soon": WarningPeriod,
	} {
		n, err := parseEvent([]byte(rawEvent("aws.ec2", reservationType, firstARN, instanceDetail(`,"instance-termination-time":"`+end+`"`))))
		if err != nil || n.Deadline.Sub(n.Noticed) != want {
			t.Errorf("%s: the deadline is %s after the notice (%v)", end, n.Deadline.Sub(n.Noticed), err)
		}
	}
}

func TestRejectedEvents(t *testing.T) {
	good := rawEvent("aws.ec2", spotType, firstARN, instanceDetail(""))
	state := func(text string) string {
		return rawEvent("aws.ec2", stateType, firstARN, instanceDetail(`,"state":`+text))
	}
	const plan = `{"service":"EC2","eventTypeCategory":"scheduledChange"`
	of := func(detail string) string { return rawEvent("aws.health", healthType, "vol-1", detail) }
	health := plan + `,"affectedEntities":[{"entityValue":"` + firstID + `"}]}`
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
		{"too deep", replaceText(t, good, `"detail":`, `"x":`+strings.Repeat("[", 50)+strings.Repeat("]", 50)+`,"detail":`), fault.Poison},
		{"too large", replaceText(t, good, `"detail":{`, `"detail":{"x":"`+strings.Repeat("x", event.MaxEnvelope)+`",`), fault.Poison},
		{"no UTF-8", replaceText(t, good, "e-1", "\xff"), fault.Poison},
		{"two byte order marks", "\ufeff\ufeff" + good, fault.Poison},
		{"an empty object", "{}", fault.Poison},
		{"base64", "eyJ2ZXJzaW9uIjoiMCJ9", fault.Poison},
		{"no source", replaceText(t, good, `"source":"aws.ec2",`, ``), fault.Poison},
		{"a number for a source", replaceText(t, good, `"source":"aws.ec2"`, `"source":7`), fault.Poison},
		{"no detail-type", replaceText(t, good, `"detail-type":"`+spotType+`",`, ``), fault.Poison},
		{"a known field twice", replaceText(t, good, `"id"`, `"account":"123456789012","id"`), fault.Poison},
		{"a known field twice, spelled twice", replaceText(t, good, `"id"`, `"Account":"123456789012","id"`), fault.Poison},
		{"an id twice", replaceText(t, good, `"instance-id"`, `"instance-id":"`+firstID+`","instance-id"`), fault.Poison},
		{"a source in another case", replaceText(t, good, "aws.ec2", "AWS.EC2"), fault.Poison},
		{"a detail-type in another case", replaceText(t, good, spotType, strings.ToLower(spotType)), fault.Poison},
		{"another version", replaceText(t, good, `"version":"0"`, `"version":"1"`), fault.Poison},
		{"another number for a version", replaceText(t, good, `"version":"0"`, `"version":1`), fault.Poison},
		{"a version after 0", replaceText(t, good, `"version":"0"`, `"version":0.5`), fault.Poison},
		{"a version of 9", replaceText(t, good, `"version":"0"`, `"version":9`), fault.Poison},
		{"an account of one digit in the ARN", replaceText(t, good, ":123456789012:", ":1:"), fault.Poison},
		{"a region of one character in the ARN", replaceText(t, good, "us-east-2:123456789012:", "x:123456789012:"), fault.Poison},
		{"two instances in the ARN", replaceText(t, good, "us-east-2:123456789012:", "us-east-2a:instance/"+secondID+":"), fault.Poison},
		{"another instance as the only resource", replaceText(t, good, `["`+firstARN+`"]`, `"`+secondID+`"`), fault.Poison},
		{"another account than the ARN's", replaceText(t, good, `"account":"123456789012"`, `"account":"123456789013"`), fault.Poison},
		{"another region than the ARN's", replaceText(t, good, `"region":"us-east-2"`, `"region":"us-east-1"`), fault.Poison},
		{"a zone of another region", replaceText(t, good, "us-east-2:123456789012:", "eu-west-1a:"), fault.Poison},
		{"another instance than the ARN's", replaceText(t, good, `"instance-id":"`+firstID, `"instance-id":"`+secondID), fault.Poison},
		{"another instance among the resources", replaceText(t, good, `["`, `["`+secondID+`","`), fault.Poison},
		{"an invalid instance ID", replaceText(t, good, `"instance-id":"`+firstID, `"instance-id":"*`), fault.Poison},
		{"an instance in capitals", replaceText(t, good, `"instance-id":"`+firstID, `"instance-id":"`+strings.ToUpper(firstID)), fault.Poison},
		{"too long an instance", replaceText(t, good, `"instance-id":"i-`, `"instance-id":"i-0123456789abcdef0`), fault.Poison},
		{"no instance", replaceText(t, good, `{"instance-id":"`+firstID+`"}`, `{}`), fault.Poison},
		{"no detail", replaceText(t, good, `{"instance-id":"`+firstID+`"}`, `7`), fault.Poison},
		{"a detail in a string", replaceText(t, good, `{"instance-id":"`+firstID+`"}`, `"{\"instance-id\":\"`+firstID+`\"}"`), fault.Poison},
		{"no state", rawEvent("aws.ec2", stateType, firstARN, instanceDetail("")), fault.Poison},
		{"a number for a state", state("7"), fault.Poison},
		{"an unknown state", state(`"asleep"`), fault.Poison},
		{"a state in another case", state(`"Stopped"`), fault.Poison},
		{"health without a service", of(`{"eventTypeCategory":"scheduledChange"}`), fault.Poison},
		{"health without a category", of(`{"service":"EC2"}`), fault.Poison},
		{"a category in another case", of(strings.Replace(health, "scheduled", "Scheduled", 1)), fault.Poison},
		{"health without entities", of(plan + `}`), fault.Poison},
		{"health with an entity twice in one", of(plan + `,"affectedEntities":[{"entityValue":"a","entityValue":"b"}]}`), fault.Poison},
		{"health of an instance elsewhere", rawEvent("aws.health", healthType, strings.Replace(firstARN, "us-east-2", "eu-west-1", 1), health), fault.Poison},
		{"health of an entity elsewhere", of(plan + `,"affectedEntities":[{"entityValue":"` + strings.Replace(firstARN, "us-east-2", "eu-west-1", 1) + `"}]}`), fault.Poison},
		{"health of a service of one character", of(strings.Replace(health, "EC2", "X", 1)), fault.Foreign},
		{"an envelope", `{"specversion":"1.0","source":"joist/scheduler"}`, fault.Poison},
		{"unknown kind", rawEvent("aws.ec2", "EBS Volume Notification", firstARN, `{}`), fault.Foreign},
		{"unknown kind without anything else", `{"source":"aws.ec2","detail-type":"EBS Volume Notification"}`, fault.Foreign},
		{"unknown source", rawEvent("aws.s3", spotType, firstARN, instanceDetail("")), fault.Foreign},
		{"an instance that starts", state(`"running"`), fault.Foreign},
		{"health of another service", of(strings.Replace(health, "EC2", "RDS", 1)), fault.Foreign},
		{"health of another category", of(`{"service":"EC2","eventTypeCategory":"issue"}`), fault.Foreign},
		{"health of a volume", of(plan + `,"affectedEntities":[{"entityValue":"vol-1"}]}`), fault.Foreign},
		{"health without affected entities", of(plan + `,"affectedEntities":[]}`), fault.Foreign},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parseEvent([]byte(tt.raw)); fault.KindOf(err) != tt.want {
				t.Fatalf("got %s (%v), want %s", fault.KindOf(err), err, tt.want)
			}
		})
	}
}

// The reason in the DLQ names the field that is missing.
func TestErrorsNameTheField(t *testing.T) {
	for _, tt := range []struct{ detailType, detail, field string }{
		{spotType, `{}`, "instance-id"},
		{stateType, instanceDetail(""), "state"},
		{healthType, `{"eventTypeCategory":"scheduledChange"}`, "service"},
		{healthType, `{"service":"EC2"}`, "eventTypeCategory"},
	} {
		source := "aws.ec2"
		if tt.detailType == healthType {
			source = "aws.health"
		}
		if _, err := parseEvent([]byte(rawEvent(source, tt.detailType, firstARN, tt.detail))); err == nil || !strings.HasSuffix(err.Error(), "the detail has no "+tt.field) {
			t.Errorf("%s with the detail %s: %v, want that it has no %s", tt.detailType, tt.detail, err, tt.field)
		}
	}
}

// An event keeps a region that AWS could have.
func TestRegion(t *testing.T) {
	good := rawEvent("aws.ec2", spotType, firstID, instanceDetail(""))
	longest := strings.Repeat("a", maxRegionBytes)
	for region, want := range map[string]string{
		"us-gov-east-1": "us-gov-east-1", "az-09": "az-09", longest: longest, longest + "a": "", "US-EAST-2": "", "us_east_2": "", "us.east.2": "",
	} {
		if n, err := parseEvent([]byte(replaceText(t, good, "us-east-2", region))); err != nil || n.Region != want {
			t.Errorf("%s: the region is %q (%v), want %q", region, n.Region, err, want)
		}
	}
}

// The instances of a Health event are in the account and the region that its detail names. Its own are where AWS delivered it.
func TestHealthLocation(t *testing.T) {
	const (
		here      = `,"eventRegion":"us-east-2","affectedAccount":"123456789012"`
		elsewhere = `,"eventRegion":"us-west-2","affectedAccount":"210987654321"`
	)
	for _, tt := range []struct {
		name, fields, location string
		want                   string
	}{
		{"neither", ``, "us-east-2:123456789012", "us-east-2:123456789012"},
		{"both its own", here, "us-east-2:123456789012", "us-east-2:123456789012"},
		{"another region, for which this is the backup", `,"eventRegion":"us-west-2"`, "us-west-2:123456789012", "us-west-2:123456789012"},
		{"another account, of which this one is the administrator", `,"affectedAccount":"210987654321"`, "us-east-2:210987654321", "us-east-2:210987654321"},
		{"another account and region", elsewhere, "us-west-2:210987654321", "us-west-2:210987654321"},
		{"invalid ones", `,"eventRegion":7,"affectedAccount":"me"`, "us-east-2:123456789012", "us-east-2:123456789012"},
		{"empty ones", `,"eventRegion":"","affectedAccount":""`, "us-east-2:123456789012", "us-east-2:123456789012"},
		{"its own, with a resource elsewhere", here, "us-west-2:123456789012", ""},
		{"its own, with a resource of another account", here, "us-east-2:210987654321", ""},
		{"others, with a resource here", elsewhere, "us-east-2:123456789012", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			arn := "arn:aws:ec2:" + tt.location + ":instance/" + firstID
			n, err := parseEvent([]byte(rawEvent("aws.health", healthType, arn,
				`{"service":"EC2","eventTypeCategory":"scheduledChange"`+tt.fields+`,"affectedEntities":[{"entityValue":"`+arn+`"}]}`)))
			if tt.want == "" {
				if fault.KindOf(err) != fault.Poison {
					t.Fatalf("got %+v (%v), want an error of kind poison", n, err)
				}
				return
			}
			if got := n.Region + ":" + n.Account; err != nil || got != tt.want {
				t.Fatalf("the instances are in %s (%v), want %s", got, err, tt.want)
			}
		})
	}
	spot, err := parseEvent([]byte(rawEvent("aws.ec2", spotType, firstARN, instanceDetail(elsewhere))))
	if err != nil || spot.Region != "us-east-2" || spot.Account != "123456789012" {
		t.Fatalf("a spot warning is of %s in %s (%v)", spot.Account, spot.Region, err)
	}
}

// The affected entities of a Health event are used, or its resources if it has no affected entities.
func TestHealthInstances(t *testing.T) {
	const plan = `{"service":"EC2","eventTypeCategory":"scheduledChange"`
	var many, entities []string
	for i := range linearSearchLimit + 1 {
		many = append(many, fmt.Sprintf("i-%08x", i))
		entities = append(entities, fmt.Sprintf(`{"entityValue":%q}`, many[i]))
	}
	for _, tt := range []struct{ name, resource, detail, want string }{
		{"another page's resource", secondID, plan + `,"affectedEntities":[{"entityValue":"` + firstID + `"}]}`, firstID},
		{"entities of an invalid type", firstID, plan + `,"affectedEntities":7}`, firstID},
		{"many entities, each twice", secondID, plan + `,"affectedEntities":[` + strings.Join(append(entities, entities...), ",") + `]}`, strings.Join(many, " ")},
		{"no entities", firstARN, plan + `}`, firstID},
		{"some entities of an invalid type", secondID, plan + `,"affectedEntities":[7,{"entityValue":[]},null,{"entityValue":"` + firstID + `"},{"entityValue":"` + secondID + `"}]}`, firstID + " " + secondID},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := parseEvent([]byte(rawEvent("aws.health", healthType, tt.resource, tt.detail)))
			if got := strings.Join(n.Instances, " "); err != nil || got != tt.want {
				t.Fatalf("got %q (%v), want %q", got, err, tt.want)
			}
		})
	}
}

func TestSNSHint(t *testing.T) {
	err := new(Document).ReadHeader([]byte(`{"Type":"Notification","TopicArn":"arn:aws:sns:us-east-2:123456789012:t","Message":"{}"}`))
	if !strings.Contains(fault.FindHint(err), "the rule") {
		t.Fatalf("%v", err)
	}
}

func TestTruncateTextKeepsRunes(t *testing.T) {
	full := strings.Repeat("x", maxTextBytes)
	for text, want := range map[string]string{full: full, full[1:] + "€uro": full[1:] + "…", full + "x": full + "…"} {
		if got := truncateText(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
