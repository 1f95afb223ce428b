package eventbus

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// fake fails the entries of a type the given number of times.
type fake struct {
	fail  map[string]int
	code  string
	err   error
	short bool
	calls [][]string
}

func (f *fake) PutEvents(_ context.Context, in *eventbridge.PutEventsInput, _ ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error) {
	out := &eventbridge.PutEventsOutput{}
	var put []string
	for _, e := range in.Entries {
		put = append(put, *e.DetailType)
		answer := types.PutEventsResultEntry{EventId: aws.String("id")}
		if f.fail[*e.DetailType] > 0 {
			f.fail[*e.DetailType]--
			out.FailedEntryCount++
			answer = types.PutEventsResultEntry{ErrorCode: &f.code, ErrorMessage: aws.String("no")}
		}
		out.Entries = append(out.Entries, answer)
	}
	f.calls = append(f.calls, put)
	if f.short {
		out.Entries = nil
	}
	return out, f.err
}

func over(f *fake) *Bus {
	return &Bus{client: f, name: "joist", setting: "JOIST_BUS", pause: func(context.Context, int) error { return nil }}
}

func messages(kinds string) []queue.Outgoing {
	var out []queue.Outgoing
	for kind := range strings.FieldsSeq(kinds) {
		out = append(out, queue.Outgoing{Source: "joist/test", Type: kind, Body: []byte(`{}`)})
	}
	return out
}

// Only failed entries are sent again.
func TestPartialFailures(t *testing.T) {
	f := &fake{fail: map[string]int{"b": 1, "d": 2}, code: "ThrottlingException"}
	if err := over(f).Send(t.Context(), messages("a b c d")...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"a", "b", "c", "d"}, {"b", "d"}, {"d"}}, f.calls); diff != "" {
		t.Error(diff)
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		name  string
		fake  fake
		kind  fault.Kind
		hint  string
		calls int
	}{
		{"never accepted", fake{fail: map[string]int{"a": 100}, code: "InternalFailure"}, fault.Retry, "", maxAttempts},
		{"refused", fake{fail: map[string]int{"a": 1}, code: "MalformedDetail"}, fault.Invalid, "", 1},
		{"rejected with an unknown code", fake{fail: map[string]int{"a": 1}, code: "TooManyCoffees"}, fault.Rejected, "", 1},
		{"entry denied", fake{fail: map[string]int{"a": 1}, code: "AccessDeniedException"}, fault.Denied, "events:PutEvents", 1},
		{"missing results", fake{short: true}, fault.Unknown, "", 1},
		{"no bus", fake{err: &types.ResourceNotFoundException{}}, fault.Missing, "JOIST_BUS", 1},
		{"denied", fake{err: &smithy.GenericAPIError{Code: "AccessDeniedException"}}, fault.Denied, "events:PutEvents", 1},
		{"theirs", fake{err: &smithy.GenericAPIError{Code: "InternalException", Fault: smithy.FaultServer}}, fault.Unknown, "", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := over(&test.fake).Send(t.Context(), messages("a")...)
			if !fault.Is(err, test.kind) || !strings.Contains(fault.FindHint(err), test.hint) || len(test.fake.calls) != test.calls {
				t.Errorf("error %v of kind %q after %d calls", err, fault.KindOf(err), len(test.fake.calls))
			}
		})
	}
}

func TestPauseStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := over(&fake{fail: map[string]int{"a": 100}, code: "InternalFailure"})
	b.pause = pauseBeforeRetry
	if err := b.Send(ctx, messages("a")...); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
