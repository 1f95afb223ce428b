package queues_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"

	"github.com/joist-autoscaler/joist/services/cli/internal/queues"
	"github.com/joist-autoscaler/joist/shared/fault"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// fakeMetrics simulates CloudWatch and records the request.
type fakeMetrics struct {
	answers []types.MetricDataResult
	err     error
	input   *cloudwatch.GetMetricDataInput
}

func (m *fakeMetrics) GetMetricData(_ context.Context, in *cloudwatch.GetMetricDataInput, _ ...func(*cloudwatch.Options)) (*cloudwatch.GetMetricDataOutput, error) {
	m.input = in
	return &cloudwatch.GetMetricDataOutput{MetricDataResults: m.answers}, m.err
}

func newResult(id string, values ...float64) types.MetricDataResult {
	return types.MetricDataResult{Id: &id, Values: values}
}

// TestReadAges: results come in any order, some without a value, and results of unknown
// queries are ignored.
func TestReadAges(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers []types.MetricDataResult
		want    map[string]time.Duration
	}{
		{"in another order, the latest first", []types.MetricDataResult{newResult("q1", 75.5, 15), newResult("q0", 60)}, map[string]time.Duration{"a": time.Minute, "b": 75500 * time.Millisecond}},
		{"an unused queue", []types.MetricDataResult{newResult("q0"), newResult("q1", 1)}, map[string]time.Duration{"b": time.Second}},
		{"results of unknown queries", []types.MetricDataResult{newResult("q7", 1), newResult("", 1), newResult("x", 1), newResult("q-1", 1)}, map[string]time.Duration{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &fakeMetrics{answers: test.answers}
			got, err := queues.ReadAges(t.Context(), m, now, []string{"a", "b"})
			if err != nil || !maps.Equal(got, test.want) {
				t.Errorf("%v, %v", got, err)
			}
			if len(m.input.MetricDataQueries) != 2 || *m.input.MetricDataQueries[1].MetricStat.Metric.Dimensions[0].Value != "b" || !m.input.EndTime.Equal(now) || !m.input.StartTime.Before(now) {
				t.Errorf("the request is %+v", m.input)
			}
		})
	}
	_, err := queues.ReadAges(t.Context(), &fakeMetrics{err: &smithy.GenericAPIError{Code: "AccessDenied"}}, now, []string{"a"})
	if !fault.Is(err, fault.Denied) {
		t.Errorf("denied: %v", err)
	}
}

// TestMessageCount adds visible, delayed and in-flight messages. A missing attribute counts as
// 0.
func TestMessageCount(t *testing.T) {
	for _, test := range []struct {
		attributes map[string]string
		want       int
	}{
		{map[string]string{"ApproximateNumberOfMessages": "3", "ApproximateNumberOfMessagesNotVisible": "2", "ApproximateNumberOfMessagesDelayed": "1"}, 6},
		{map[string]string{"ApproximateNumberOfMessages": "3"}, 3}, {map[string]string{"ApproximateNumberOfMessages": "many"}, 0}, {nil, 0},
	} {
		if got := (queues.FoundQueue{Attributes: test.attributes}).MessageCount(); got != test.want {
			t.Errorf("%v: %d messages", test.attributes, got)
		}
	}
}

// TestFormatError: the text has the hint once, and no line break.
func TestFormatError(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("a\n  b"), "a b"},
		{fault.F("looking", fault.Missing, "it does not exist").WithHint("look elsewhere"), "looking: it does not exist; try: look elsewhere"},
	} {
		if got := queues.FormatError(test.err); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
