package remedy

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

func TestLooked(t *testing.T) {
	for _, tt := range []struct {
		name  string
		terms []cloud.Selector
		want  string
	}{
		{"tags are sorted", []cloud.Selector{{Tags: map[string]string{"b": "2", "a": "*"}}}, "tag a=* and tag b=2"},
		{"terms are alternatives", []cloud.Selector{{ID: "x"}, {Name: "n", Owner: "self"}}, "id x, or name n and owner self"},
		{"an empty term", []cloud.Selector{{}}, "an empty term"},
		{"no terms", nil, "any of no terms at all"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Looked(tt.terms); got != tt.want {
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
	got := Subnets(terms).Message
	if len(got) > messageMax+len("…") || !utf8.ValidString(got) {
		t.Fatalf("%d bytes, valid %v", len(got), utf8.ValidString(got))
	}
}

// What AWS did not tell has a reason by its kind, and the remedy of the error.
func TestUnread(t *testing.T) {
	for _, tt := range []struct {
		err    error
		reason string
		says   string
	}{
		{fault.F("describing", fault.Denied, "no").WithHint("allow ec2:DescribeSubnets"), "AWSAccessDenied", "allow ec2:DescribeSubnets"},
		{fault.F("describing", fault.Throttled, "rate"), "AWSThrottled", "rate"},
		{fault.F("describing", fault.Missing, "no cluster"), "ClusterNotFound", "no cluster"},
		{errors.New("connection refused"), "AWSUnavailable", "connection refused"},
	} {
		got := Unread("SubnetsReady", tt.err)
		if got.Reason != tt.reason || !got.Unread || !strings.Contains(got.Message, tt.says) {
			t.Errorf("%v: got %+v", tt.err, got)
		}
		if lines := Lines([]event.Problem{got}); len(lines) != 1 || !strings.HasPrefix(lines[0], "SubnetsReady "+tt.reason+": ") {
			t.Errorf("told as %q", lines)
		}
	}
}
