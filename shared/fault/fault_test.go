package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/joist-autoscaler/joist/shared/fault"
)

func TestKindOf(t *testing.T) {
	poison := fault.E("decoding", fault.Poison, io.EOF)
	for _, test := range []struct {
		name string
		err  error
		want fault.Kind
	}{
		{"success", nil, ""},
		{"no kind", io.EOF, fault.Bug},
		{"wrapped without a kind", fmt.Errorf("reading: %w", io.EOF), fault.Bug},
		{"its own", poison, fault.Poison},
		{"wrapped", fmt.Errorf("handling: %w", poison), fault.Poison},
		{"outermost", fault.E("reading", fault.Retry, poison), fault.Retry},
		{"one of many without a kind", errors.Join(io.EOF, poison, nil), fault.Poison},
		{"joined without causes", fmt.Errorf("%w, %w", error(nil), error(nil)), fault.Bug},
		{"many without a kind", errors.Join(io.EOF, io.ErrClosedPipe), fault.Bug},
		{"one of many may succeed later", errors.Join(poison, fault.E("x", fault.Retry, nil), fault.E("y", fault.Stale, nil)), fault.Retry},
		{"joined and wrapped", fmt.Errorf("a: %w", errors.Join(fault.E("y", fault.Stale, nil), fmt.Errorf("b: %w", fault.E("x", fault.Unknown, nil)))), fault.Unknown},
		{"joined below a kind", fault.E("z", fault.Stale, errors.Join(fault.E("x", fault.Unknown, nil))), fault.Stale},
		{"cancelled, and another error", errors.Join(poison, fmt.Errorf("calling: %w", context.Canceled)), fault.Retry},
		{"stopping", fmt.Errorf("calling: %w", context.Canceled), fault.Retry},
		{"late", context.DeadlineExceeded, fault.Retry},
		{"a kind beats the context", fault.E("calling", fault.Unknown, context.Canceled), fault.Unknown},
	} {
		if got := fault.KindOf(test.err); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestIs(t *testing.T) {
	err := fmt.Errorf("more: %w", fault.F("reading", fault.Missing, "no %s", "thing"))
	if !fault.Is(err, fault.Retry, fault.Missing) {
		t.Error("the second of the kinds does not count")
	}
	if fault.Is(err, fault.Retry) || fault.Is(err) || fault.Is(nil, "") {
		t.Error("a kind was found that is not there")
	}
}

// If a message is retried for one of two joined errors, it is retried for both of them.
func TestKindOfJoinedErrors(t *testing.T) {
	ends := []fault.Kind{fault.Foreign, fault.Stale, fault.Poison, fault.Invalid, fault.Bug}
	retried := []fault.Kind{fault.Conflict, fault.Missing, fault.Throttled, fault.Retry, fault.Rejected, fault.Denied, fault.Unknown}
	for _, end := range ends {
		for _, again := range retried {
			a, b := fault.E("a", end, nil), fault.E("b", again, nil)
			if got, swapped := fault.KindOf(errors.Join(a, b)), fault.KindOf(errors.Join(b, a)); got != again || swapped != again {
				t.Errorf("%s and %s: %q, and in the other order %q", end, again, got, swapped)
			}
		}
	}
}

func TestAreAll(t *testing.T) {
	conflict, throttled, unknown := fault.E("a", fault.Conflict, nil), fault.E("b", fault.Throttled, nil), fault.E("c", fault.Unknown, nil)
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"success", nil, false},
		{"one", conflict, true},
		{"both", fmt.Errorf("more: %w", errors.Join(conflict, throttled)), true},
		{"one of another kind", fmt.Errorf("more: %w", errors.Join(conflict, unknown)), false},
		{"one without a kind", errors.Join(conflict, io.EOF), false},
		{"joined without causes", fmt.Errorf("%w, %w", error(nil), error(nil)), false},
	} {
		if got := fault.AreAll(test.err, fault.Conflict, fault.Throttled); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}

func TestText(t *testing.T) {
	err := fault.F("reading intent 3f", fault.Denied, "status %d: %w", 403, io.EOF).WithHint("grant %s", "s3:GetObject")
	if want := "reading intent 3f: status 403: EOF (try: grant s3:GetObject)"; err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	if !errors.Is(err, io.EOF) {
		t.Error("the cause is not found")
	}
	if got := fault.E("waiting", fault.Retry, nil).Error(); got != "waiting" {
		t.Errorf("an error without a cause says %q", got)
	}
}

func TestHintOf(t *testing.T) {
	hinted := fault.F("a", fault.Denied, "b").WithHint("c")
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"success", nil, ""},
		{"none", fault.F("a", fault.Denied, "b"), ""},
		{"its own", hinted, "c"},
		{"below another", fault.E("x", fault.Retry, fmt.Errorf("y: %w", hinted)), "c"},
		{"the outermost", fault.E("x", fault.Retry, hinted).WithHint("d"), "d"},
		{"in the second of many", fmt.Errorf("z: %w", errors.Join(io.EOF, fault.E("x", fault.Bug, nil), hinted)), "c"},
	} {
		if got := fault.FindHint(test.err); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestTruncateCutsBetweenCharacters(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc…"},
		{"aéb", 2, "a…"},
		{"aéb", 3, "aé…"},
		{"aé", 3, "aé"},
	} {
		if got := fault.Truncate(c.text, c.limit); got != c.want {
			t.Errorf("Truncate(%q, %d) is %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}
