package mutation_test

// pauseBugs are mistakes in reboots and drains, most of which need a replica that is paused or whose cache is late.
var pauseBugs = []bug{{
	name: "reboot-taint-not-written", promise: "a node that is rebooted accepts no pods",
	file: "services/lifecycle/internal/nodeclaim/reboot.go",
	from: `	if node, changes := v.withRebootTaint(); changes {
		if !v.isRebootCurrent() {
			return nil // Nothing would remove the taint if the reboot has ended.
		}
		return []effect.Effect{effect.Update{Object: node}}
	}
	boot, recorded`,
	to: `	boot, recorded`,
}, {
	name: "reboot-request-after-the-reboot", promise: "TestReboot", in: "./services/lifecycle/internal/nodeclaim",
	file: "services/lifecycle/internal/nodeclaim/reboot.go",
	from: `	if v.Node.Status.NodeInfo.BootID == v.Claim.Annotations[karpenter.RebootPreBootIDAnnotationKey] || !isSettled {
`,
	to: `	if _ = isSettled; v.Node.Status.NodeInfo.BootID == v.Claim.Annotations[karpenter.RebootPreBootIDAnnotationKey] {
`,
}, {
	name: "rebooted-without-an-answer", promise: "TestRebootWithoutAnswer", in: "./services/lifecycle",
	file: "services/lifecycle/internal/nodeclaim/reboot.go",
	from: `	case v.Node.Status.NodeInfo.BootID != boot, p.Since.IsZero():
`,
	to: `	case boot == "", p.Since.IsZero():
`,
}, {
	name: "reboot-keeps-pods-coming", promise: "TestRebootThroughAllServices", in: "./integration/suites/sim",
	file: "services/lifecycle/internal/nodeclaim/reboot.go",
	from: `	if node, changes := v.withRebootTaint(); changes {
`,
	to: `	if node, changes := v.withRebootTaint(); changes && false {
`,
}, {
	name: "failed-reboot-by-uid", promise: "TestReplicaPausedBeforeFailedRebootEnds", in: "./services/lifecycle",
	file: "services/lifecycle/internal/nodeclaim/reboot.go",
	from: `Why: RebootFailed + why, Read: v.Claim},`,
	to:   `Why: RebootFailed + why},`,
}, {
	name: "reboot-by-a-late-cache", promise: "TestRebootIsNotRepeatedByLateCache", in: "./services/lifecycle",
	file: "services/lifecycle/internal/nodeclaim/reboot.go",
	from: `	if !v.isRebootCurrent() {
		v.Retry(`,
	to: `	if false {
		v.Retry(`,
}, {
	name: "reboot-with-unseen-pods", promise: "TestRebootWaitsForUnseenPod", in: "./services/lifecycle",
	file: "services/lifecycle/internal/nodeclaim/reboot.go",
	from: `		pods, read := v.PodsNow()
`,
	to: `		pods, read := v.Pods, true
`,
}, {
	name: "pods-of-another-node-deleted", promise: "TestDrainOfReusedName", in: "./services/lifecycle",
	file: "services/lifecycle/internal/effect/executor.go",
	from: `		if now.UID != e.Node.UID {`,
	to:   `		if now.UID == "" {`,
}, {
	name: "cached-pods-of-another-node", promise: "TestDrainOfReusedName", in: "./services/lifecycle",
	file: "services/lifecycle/clusterstate.go",
	from: `known && now.GetUID() == node.UID {`,
	to:   `known || now == nil {`,
}, {
	name: "evictions-after-a-pause", promise: "TestPausedReplicaEvictsNoPod", in: "./services/lifecycle",
	file: "services/lifecycle/internal/effect/executor.go",
	from: `	if d.Leads == nil || d.Leads() {
`,
	to: `	if d.Leads == nil || true {
`,
}, {
	name: "pods-before-the-taint", promise: "TestPodBoundBeforeTheTaint", in: "./services/lifecycle",
	file: "services/lifecycle/internal/disruption/objection.go",
	from: `		if n := c.CountMoving(l.Now); n > *p.MovingPods {
			return Objection{`,
	to: `		if n := c.CountMoving(l.Now); n > 1000 {
			return Objection{`,
}}
