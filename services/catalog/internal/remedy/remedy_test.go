package remedy

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/shared/cloud"
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
