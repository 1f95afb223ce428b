package cloud_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "anything", true},
		{"a*", "abc", true}, {"a*", "ba", false}, {"*c", "abc", true}, {"*c", "abcd", false},
		{"a*c*e", "abcde", true}, {"a*c*e", "abcd", false}, {"a**", "a", true},
		{"?", "a", true}, {"?", "", false}, {"a?c", "abc", true}, {"*b?", "abbb", true},
		{"a.c", "abc", false}, {"[a]", "a", false},
	} {
		if got := cloud.Glob(tt.pattern, tt.text); got != tt.want {
			t.Errorf("Glob(%q, %q) = %t", tt.pattern, tt.text, got)
		}
	}
}

func TestTagged(t *testing.T) {
	have := map[string]string{"team": "web", "empty": ""}
	for _, tt := range []struct {
		name   string
		wanted map[string]string
		want   bool
	}{
		{"no tags", nil, true},
		{"a value", map[string]string{"team": "web"}, true},
		{"a wildcard", map[string]string{"team": "w*"}, true},
		{"any value matches an empty one", map[string]string{"empty": "*"}, true},
		{"one of two tags is missing", map[string]string{"team": "web", "absent": "*"}, false},
		{"another value", map[string]string{"team": "api"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := cloud.Tagged(tt.wanted, have); got != tt.want {
				t.Errorf("%t", got)
			}
		})
	}
}
