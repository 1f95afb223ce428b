package interrupted

import (
	"slices"
	"time"

	"github.com/aws/karpenter-provider-aws/pkg/controllers/interruption"
	"github.com/aws/karpenter-provider-aws/pkg/controllers/interruption/messages"

	"github.com/joist-autoscaler/joist/shared/event/noticetest"
)

// Reading is what Karpenter's parser makes of the corpus of odd events. Joist's
// verdicts are the corpus's own: its tests hold it to them.
type Reading struct {
	// Bodies are all of them.
	Bodies int `json:"bodies"`
	// True counts events of ours that are to be acted on, and Lost those of them
	// that it drops or takes for nothing.
	True int `json:"true"`
	Lost int `json:"lost"`
	// Warnings are the spot warnings among them, each of which is a node's two minutes.
	Warnings     int `json:"warnings"`
	LostWarnings int `json:"lostWarnings"`
	// Others are to be left alone: foreign, stale, or contradicting themselves. Wrong
	// counts those that it would act on, for an instance of ours.
	Others int `json:"others"`
	Wrong  int `json:"wrong"`
}

// Read lets Karpenter's parser read the corpus.
func Read(now time.Time) Reading {
	parser := interruption.NewEventParser(interruption.DefaultParsers...)
	var r Reading
	for _, e := range noticetest.Corpus(now) {
		r.Bodies++
		message, err := parser.Parse(string(e.Body))
		var named []string
		if err == nil && message.Kind() != messages.NoOpKind {
			named = ours(message.EC2InstanceIDs())
		}
		if e.Want != noticetest.Act {
			r.Others++
			// A recommendation it only tells.
			r.Wrong += one(len(named) > 0 && message.Kind() != messages.RebalanceRecommendationKind)
			continue
		}
		kept := !slices.ContainsFunc(e.Instances, func(id string) bool { return !slices.Contains(named, id) })
		r.True++
		r.Lost += one(!kept)
		r.Warnings += one(e.Warning)
		r.LostWarnings += one(e.Warning && !kept)
	}
	return r
}

// ours are the ids that a claim of the cluster would have.
func ours(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id != noticetest.Ended && !slices.Contains(noticetest.Ours, id) })
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
