package eventpattern

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue/eventpattern/patterntest"
)

func TestMatch(t *testing.T) {
	for _, test := range patterntest.Cases {
		t.Run(test.Name, func(t *testing.T) {
			pattern, err := Compile([]byte(test.Pattern))
			if err != nil {
				t.Fatal(err)
			}
			got, err := pattern.Match([]byte(patterntest.Notice))
			if err != nil || got != test.Want {
				t.Errorf("%s: %v, %v; want %v", test.Pattern, got, err, test.Want)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, test := range patterntest.Refusals {
		_, err := Compile([]byte(test.Pattern))
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), test.Says) {
			t.Errorf("%s: %v; want %q", test.Pattern, err, test.Says)
		}
	}
}

func TestMatchRefuses(t *testing.T) {
	pattern, err := Compile([]byte(`{"a": ["x"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{``, `[]`, `{"a": "x"`, `{"a":"` + strings.Repeat("x", MaxEvent) + `"}`} {
		if _, err := pattern.Match([]byte(event)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%.20s: %v", event, err)
		}
	}
}

// A wildcard matches the same strings as the equivalent regular expression.
func TestWildcardMatchesRegexp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 1, 3, -1), 1, 4).Draw(t, "pieces")
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 12, -1).Draw(t, "text")
		edge := rapid.SampledFrom([]string{"", "*"})
		pattern := edge.Draw(t, "left") + strings.Join(pieces, "*") + edge.Draw(t, "right")
		m, err := compileWildcard(pattern)
		if err != nil {
			t.Fatal(err)
		}
		want := regexp.MustCompile("^" + strings.ReplaceAll(pattern, "*", ".*") + "$").MatchString(text)
		if got := m(text); got != want {
			t.Fatalf("%q on %q: %v", pattern, text, got)
		}
	})
}

func FuzzMatch(f *testing.F) {
	f.Add(`{"source": [{"wildcard": "aws.*"}]}`, patterntest.Notice)
	f.Add(`{"$or": [{"a": [{"numeric": [">", 0, "<=", 5]}]}, {"b": [{"cidr": "10.0.0.0/8"}]}]}`, `{"a": [1, [2]]}`)
	f.Fuzz(func(t *testing.T, pattern, event string) {
		p, err := Compile([]byte(pattern))
		if err != nil {
			return
		}
		first, _ := p.Match([]byte(event))
		if second, _ := p.Match([]byte(event)); first != second {
			t.Error("two matches of the same event differ")
		}
	})
}
