package interruption_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/interruption"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// AWS events are counted like Karpenter's.
func TestCountLines(t *testing.T) {
	sent := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	line := func(typ string, action host.Action, kind fault.Kind, fields ...any) host.LogLine {
		return host.LogLine{
			LogFields: host.LogFields{Type: typ, Pairs: fields}, Message: queue.Message{Sent: sent}, Disposition: host.MessageDisposition{Action: action, Kind: kind},
			Start: sent.Add(2 * time.Second), Duration: 500 * time.Millisecond,
		}
	}
	notDeleted := line("aws.spot-interruption", host.Delete, "")
	notDeleted.DispositionErr = errors.New("the queue is unavailable")
	for _, test := range []struct {
		name string
		line host.LogLine
		want []string
	}{
		{"a warning", line("aws.spot-interruption", host.Delete, ""), []string{"karpenter_interruption_received_messages_total 1 spot_interrupted", "karpenter_interruption_deleted_messages_total 1", "karpenter_interruption_message_queue_duration_seconds 2.5"}},
		{"an event of another cluster", line("aws.rebalance-recommendation", host.Delete, fault.Foreign), []string{"karpenter_interruption_received_messages_total 1 rebalance_recommendation", "karpenter_interruption_deleted_messages_total 1", "karpenter_interruption_message_queue_duration_seconds 2.5"}},
		{"an event that is retried", line("aws.scheduled-change", host.RetryLater, fault.Retry), []string{"karpenter_interruption_received_messages_total 1 scheduled_change"}},
		{"an undecodable event", line("aws.other", host.MoveToDLQ, fault.Poison), []string{"karpenter_interruption_deleted_messages_total 1"}},
		{"an event that could not be deleted", notDeleted, []string{"karpenter_interruption_received_messages_total 1 spot_interrupted"}},
		{"a stop", line("aws.state-change", host.Delete, "", "detail", "stopping"), []string{"karpenter_interruption_received_messages_total 1 instance_stopped", "karpenter_interruption_deleted_messages_total 1", "karpenter_interruption_message_queue_duration_seconds 2.5"}},
		{"an end", line("aws.state-change", host.Delete, "", "n", 1, "detail", "terminated"), []string{"karpenter_interruption_received_messages_total 1 instance_terminated", "karpenter_interruption_deleted_messages_total 1", "karpenter_interruption_message_queue_duration_seconds 2.5"}},
		{"a start", line("aws.state-change", host.Delete, "", "detail", "running"), []string{"karpenter_interruption_received_messages_total 1 no_op", "karpenter_interruption_deleted_messages_total 1", "karpenter_interruption_message_queue_duration_seconds 2.5"}},
		{"a change without a state", line("aws.state-change", host.Delete, ""), []string{"karpenter_interruption_received_messages_total 1 no_op", "karpenter_interruption_deleted_messages_total 1", "karpenter_interruption_message_queue_duration_seconds 2.5"}},
		{"a change with only the name of a field", line("aws.state-change", host.Delete, "", "detail"), []string{"karpenter_interruption_received_messages_total 1 no_op", "karpenter_interruption_deleted_messages_total 1", "karpenter_interruption_message_queue_duration_seconds 2.5"}},
		{"another event with a state", line("aws.other", host.Delete, "", "detail", "stopped"), []string{"karpenter_interruption_received_messages_total 1 no_op", "karpenter_interruption_deleted_messages_total 1", "karpenter_interruption_message_queue_duration_seconds 2.5"}},
		{"a reservation warning", line("aws.capacity-reservation-interruption", host.Delete, ""), []string{"karpenter_interruption_received_messages_total 1 capacity_reservation_interrupted", "karpenter_interruption_deleted_messages_total 1", "karpenter_interruption_message_queue_duration_seconds 2.5"}},
		{"an ignored event", line("aws.other", host.Delete, fault.Foreign), []string{"karpenter_interruption_received_messages_total 1 no_op", "karpenter_interruption_deleted_messages_total 1", "karpenter_interruption_message_queue_duration_seconds 2.5"}},
		{"a tick", line("tick.v1", host.Delete, ""), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			interruption.CountLines(func(m metric.Metric, value float64, labels ...string) {
				got = append(got, strings.Join(slices.Concat([]string{m.Name, strconv.FormatFloat(value, 'g', -1, 64)}, labels), " "))
			})(test.line)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
