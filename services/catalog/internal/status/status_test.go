package status

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

func TestDescribeTerms(t *testing.T) {
	for _, tt := range []struct {
		name  string
		terms []cloud.Selector
		want  string
	}{
		{"tags are sorted", []cloud.Selector{{Tags: map[string]string{"b": "2", "a": "*"}}}, "tag a=* and tag b=2"},
		{"terms are alternatives", []cloud.Selector{{ID: "x"}, {Name: "n", Owner: "self"}}, "id x, or name n and owner self"},
		{"an empty term", []cloud.Selector{{}}, "an empty term"},
		{"no terms", nil, "an empty list of terms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := DescribeTerms(tt.terms); got != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	var terms []cloud.Selector
	for range 30 {
		terms = append(terms, cloud.Selector{Tags: map[string]string{"é" + strings.Repeat("ü", 127): strings.Repeat("ß", 255)}})
	}
	got := NoSubnets(terms).Message
	if len(got) > messageMax+len("…") || !utf8.ValidString(got) {
		t.Fatalf("%d bytes, valid %v", len(got), utf8.ValidString(got))
	}
}

// The reason follows from the error's kind, and the message has the error's hint.
func TestUnreadCondition(t *testing.T) {
	for _, tt := range []struct {
		err    error
		reason string
		text   string
	}{
		{fault.F("describing", fault.Denied, "no").WithHint("allow ec2:DescribeSubnets"), "AWSAccessDenied", "allow ec2:DescribeSubnets"},
		{fault.F("describing", fault.Throttled, "rate"), "AWSThrottled", "rate"},
		{fault.F("describing", fault.Missing, "no cluster"), "ClusterNotFound", "no cluster"},
		{errors.New("connection refused"), "AWSUnavailable", "connection refused"},
	} {
		got := UnreadCondition("SubnetsReady", tt.err)
		if got.Reason != tt.reason || !got.Unread || !strings.Contains(got.Message, tt.text) {
			t.Errorf("%v: got %+v", tt.err, got)
		}
		if lines := FormatProblems([]event.Problem{got}); len(lines) != 1 || !strings.HasPrefix(lines[0], "SubnetsReady "+tt.reason+": ") {
			t.Errorf("lines %q", lines)
		}
	}
}
