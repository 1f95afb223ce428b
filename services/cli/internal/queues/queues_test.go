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

// metrics answers as CloudWatch, and remembers what it was asked.
type metrics struct {
	answers []types.MetricDataResult
	err     error
	asked   *cloudwatch.GetMetricDataInput
}

func (m *metrics) GetMetricData(_ context.Context, in *cloudwatch.GetMetricDataInput, _ ...func(*cloudwatch.Options)) (*cloudwatch.GetMetricDataOutput, error) {
	m.asked = in
	return &cloudwatch.GetMetricDataOutput{MetricDataResults: m.answers}, m.err
}

func answer(id string, values ...float64) types.MetricDataResult {
	return types.MetricDataResult{Id: &id, Values: values}
}

// TestAges: answers come in any order, some without a value, and what is no answer to a
// question of ours is passed over.
func TestAges(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers []types.MetricDataResult
		want    map[string]time.Duration
	}{
		{"in another order, the latest first", []types.MetricDataResult{answer("q1", 75.5, 15), answer("q0", 60)}, map[string]time.Duration{"a": time.Minute, "b": 75500 * time.Millisecond}},
		{"a queue that nobody uses", []types.MetricDataResult{answer("q0"), answer("q1", 1)}, map[string]time.Duration{"b": time.Second}},
		{"answers to nothing", []types.MetricDataResult{answer("q7", 1), answer("", 1), answer("x", 1), answer("q-1", 1)}, map[string]time.Duration{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &metrics{answers: test.answers}
			got, err := queues.ReadAges(t.Context(), m, now, []string{"a", "b"})
			if err != nil || !maps.Equal(got, test.want) {
				t.Errorf("%v, %v", got, err)
			}
			if len(m.asked.MetricDataQueries) != 2 || *m.asked.MetricDataQueries[1].MetricStat.Metric.Dimensions[0].Value != "b" || !m.asked.EndTime.Equal(now) || !m.asked.StartTime.Before(now) {
				t.Errorf("it asked %+v", m.asked)
			}
		})
	}
	_, err := queues.ReadAges(t.Context(), &metrics{err: &smithy.GenericAPIError{Code: "AccessDenied"}}, now, []string{"a"})
	if !fault.Is(err, fault.Denied) {
		t.Errorf("denied: %v", err)
	}
}

// TestMessages counts what waits, what is in flight and what is delayed; what SQS does
// not say is none.
func TestMessages(t *testing.T) {
	for _, test := range []struct {
		attributes map[string]string
		want       int
	}{
		{map[string]string{"ApproximateNumberOfMessages": "3", "ApproximateNumberOfMessagesNotVisible": "2", "ApproximateNumberOfMessagesDelayed": "1"}, 6},
		{map[string]string{"ApproximateNumberOfMessages": "3"}, 3}, {map[string]string{"ApproximateNumberOfMessages": "many"}, 0}, {nil, 0},
	} {
		if got := (queues.Place{Attributes: test.attributes}).Messages(); got != test.want {
			t.Errorf("%v are %d messages", test.attributes, got)
		}
	}
}

// TestSaid: the remedy is said once, and all of it in one line.
func TestSaid(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("a\n  b"), "a b"},
		{fault.F("looking", fault.Missing, "there is none").WithHint("look elsewhere"), "looking: there is none; try: look elsewhere"},
	} {
		if got := queues.ErrorText(test.err); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
