package mutation_test

import "slices"

// allBugs are all planted bugs.
var allBugs = slices.Concat(bugs, checkBugs, pauseBugs)

// checkBugs are mistakes that break the promises which none of bugs breaks.
var checkBugs = []bug{{
	name: "first-instance-for-all", promise: "an instance has one NodeClaim",
	file: "services/lifecycle/binding.go",
	from: `binding{free, instance})`,
	to:   `binding{free, instances[0]})`,
}, {
	name: "ready-is-initialized", promise: "conditions become true in order",
	file: "services/lifecycle/internal/nodeclaim/conditions/conditions.go",
	from: `	if !c.IsTrue(karpenter.ConditionTypeRegistered) || s.Claim.IsRebooting() {
		have`,
	to: `	if len(s.Nodes) == 1 && NodeReady(s.Nodes[0]) && !s.Claim.IsRebooting() {
		return trueCondition(kind)
	}
	if !c.IsTrue(karpenter.ConditionTypeRegistered) || s.Claim.IsRebooting() {
		have`,
}, {
	name: "failed-but-not-undone", promise: "every disruption completes",
	file: "services/lifecycle/disruption.go",
	from: `		err := s.rollBackClaim(ctx, c, why)
		if err == nil {`,
	to: `		_ = why
		if err == nil {`,
}, {
	name: "toleration-not-waited-for", promise: "only unhealthy nodes are repaired",
	file: "shared/karpenter/repair/match.go",
	from: `			out.merge(p, c, from.Add(p.Toleration), now)`,
	to:   `			out.merge(p, c, from, now)`,
}, {
	// EC2 rejects a launch into a full reservation, so only its model can break the promise.
	name: "full-reservation-accepts", promise: "no reservation is exceeded",
	file: "shared/cloud/memcloud/reservation.go",
	from: `		if r.ID == target.ID && c.left(r) == 0 {`,
	to:   `		if r.ID == target.ID && c.left(r) < 0 {`,
}, {
	// SQS keeps a message whose delivery is lost, so only its model can break the promise.
	name: "lost-deliveries-are-lost", promise: "messages are conserved",
	file: "shared/queue/memqueue/receive.go",
	from: `b.faults.LoseReceiveAnswer) {
		return`,
	to: `b.faults.LoseReceiveAnswer) {
		for _, r := range records {
			q.removeRecord(r)
		}
		return`,
}, {
	name: "proposed-is-confirmed", promise: "every trace is a path of the models",
	file: "services/lifecycle/proposal.go",
	from: `ProposedAt: s.Now().UTC(), TerminateFirst`,
	to:   `ProposedAt: s.Now().UTC(), ConfirmedAt: s.Now().UTC(), TerminateFirst`,
}, {
	name: "created-as-admitted", promise: "every trace is a path of the models",
	file: "services/lifecycle/admit.go",
	from: `	s.writeTrace(claim, e)
	stored, err := s.Client.Create(ctx, claim)`,
	to: `	s.writeTrace(claim, e)
	annotateObject(claim, launchspec.AdmittedAnnotation, s.Now().UTC().Format(time.RFC3339))
	stored, err := s.Client.Create(ctx, claim)`,
}}
