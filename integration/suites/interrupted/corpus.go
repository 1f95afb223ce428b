package interrupted

import (
	"slices"
	"time"

	"github.com/aws/karpenter-provider-aws/pkg/controllers/interruption"
	"github.com/aws/karpenter-provider-aws/pkg/controllers/interruption/messages"

	"github.com/joist-autoscaler/joist/shared/event/noticetest"
)

// Reading is the result of Karpenter's parser for the corpus of unusual events. The
// corpus has Joist's dispositions, which its own tests check.
type Reading struct {
	// Bodies is the number of events.
	Bodies int `json:"bodies"`
	// True counts the cluster's events that need an action, and Lost the ones that
	// Karpenter drops or ignores.
	True int `json:"true"`
	Lost int `json:"lost"`
	// Warnings counts the spot warnings in True, and LostWarnings those in Lost. A lost
	// warning costs a node its two minutes.
	Warnings     int `json:"warnings"`
	LostWarnings int `json:"lostWarnings"`
	// Others counts events that need no action: foreign, stale, or inconsistent. Wrong
	// counts those on which Karpenter would act for an instance of the cluster.
	Others int `json:"others"`
	Wrong  int `json:"wrong"`
}

// Read parses the corpus with Karpenter's parser.
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
			// Karpenter only publishes an Event for a rebalance recommendation.
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

// ours returns the ids that a claim of the cluster would have.
func ours(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id != noticetest.Ended && !slices.Contains(noticetest.Ours, id) })
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
