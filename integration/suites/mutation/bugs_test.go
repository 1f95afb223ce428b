package mutation_test

// bugs are mistakes that the protocol exists to rule out.
var bugs = []bug{{
	name: "token-random", promise: "no intent is launched twice",
	file: "services/launcher/launch.go",
	from: `	result, err := s.EC2.CreateFleet(ctx, intent.Fleet)`,
	to:   `	intent.Fleet.Token = fmt.Sprint(intent.ID, s.Now().UnixNano()); result, err := s.EC2.CreateFleet(ctx, intent.Fleet)`,
}, {
	name: "fence-removed", promise: "the outbox sequence never decreases",
	file: "shared/cluster/outbox/outbox.go",
	from: `	object := h.object.DeepCopy()
	object.Data`,
	to: `	object := h.object.DeepCopy()
	if now, err := cluster.Get[*corev1.ConfigMap](ctx, client, cluster.ConfigMaps, cluster.KeyOf(object)); err == nil { object.ResourceVersion = now.ResourceVersion }
	object.Data`,
}, {
	name: "claims-after-launch", promise: "no intent is launched twice",
	file: "services/lifecycle/admit.go",
	from: `		uids, stored, refused, err := s.createClaims(ctx, e, held, plan)
		if err != nil {
			return held, err
		}
		created = stored
		if held`,
	to: `	for _, intent := range plan.Intents { for _, c := range intent.Claims { if held.ListsClaim(c.Object.Name) {
		r, _ := parseLaunchRequest(&c.Object)
		_ = s.executor.Execute(ctx, &e, effect.Send{Body: r})
	} } }
	if s.Now().UnixNano()%2 == 0 { return held, fault.F("creating claims", fault.Stale, "mutation") }
	uids, stored, refused, err := s.createClaims(ctx, e, held, plan)
	if err != nil {
		return held, err
	}
	created = stored
	if held`,
}, {
	name: "strict-limits-are-not", promise: "no NodePool limit is exceeded",
	file: "shared/planning/proposal.go",
	from: `	return np.IsStatic() || poolpolicy.StrictLimits(np.Annotations)`,
	to:   `	_ = poolpolicy.StrictLimits; return np.IsStatic()`,
}, {
	name: "part-of-an-intent", promise: "no intent is launched twice", seed: 95,
	file: "services/lifecycle/internal/admission/completeness.go",
	from: `	return err == nil && c[`,
	to:   `	return err == nil || c[`,
}, {
	name: "done-before-seen", promise: "a batch contains the NodeClaims of the plan before",
	file: "services/watcher/internal/inflight/inflight.go",
	from: `		if !v.hasCaughtUp() {`,
	to:   `		if false {`,
}, {
	name: "absence-as-death", promise: "a NodeClaim outlives its instance",
	file: "services/lifecycle/internal/garbagecollection/inventory.go",
	from: `	if !ok || f.Started.Before(from.Add(SettleTime)) {
		return
	}
	first, err := time.Parse(time.RFC3339Nano, c.Annotations[AbsentAnnotation])
	switch {
	case err != nil:
		f.Absent = append(f.Absent, c)`,
	to: `	if !ok || from.IsZero() {
		return
	}
	first, err := time.Parse(time.RFC3339Nano, c.Annotations[AbsentAnnotation])
	switch {
	case err != nil:
		f.Gone = append(f.Gone, c)`,
}, {
	name: "slot-order", promise: "a NodeClaim is bound once",
	file: "services/lifecycle/binding.go",
	from: `		if c.Status.ProviderID == "" && (free < 0`,
	to:   `		if free < 0 || c.Status.ProviderID == "" && (free < 0`,
}, {
	name: "dedupe-by-message-id", promise: "messages are deleted after they are handled",
	file: "shared/host/worker.go",
	from: `	err := callHandler(&fields, w.Handle, m)`,
	to: `	if m.Receives > 1 { _ = w.Queue.Delete(applyCtx, m.Receipt); return LogLine{Disposition: MessageDisposition{Action: Delete}} }
	err := callHandler(&fields, w.Handle, m)`,
}, {
	name: "delete-before-effect", promise: "messages are deleted after they are handled",
	file: "shared/host/worker.go",
	from: `	err := callHandler(&fields, w.Handle, m)`,
	to: `	_ = w.Queue.Delete(applyCtx, m.Receipt)
	err := callHandler(&fields, w.Handle, m)`,
}, {
	name: "no-expiry", promise: "expired messages are not handled",
	file: "shared/host/handler.go",
	from: `	case e.HasExpired(accept.Now()):`,
	to:   `	case false:`,
}, {
	name: "relative-deadline", promise: "a drain ends by the deadline of the interruption",
	file: "services/lifecycle/notice.go",
	from: `	if marked, changed := nodeclaim.WithEarlierDeadline(c, b.Deadline); changed {`,
	to:   `	if marked, changed := nodeclaim.WithEarlierDeadline(c, s.Now().Add(2*time.Minute)); changed {`,
}, {
	name: "phase-forgotten", promise: "conditions never revert",
	file: "services/lifecycle/internal/nodeclaim/conditions/conditions.go",
	from: `have.Status == metav1.ConditionTrue {
			next = have`,
	to: `have.Status == "never" {
			next = have`,
}, {
	name: "taint-after-label", promise: "a registered node has its labels and taints",
	file: "services/lifecycle/internal/nodeclaim/registration.go",
	from: `	node.Spec.Taints = withoutTaint(node.Spec.Taints, karpenter.UnregisteredTaintKey)
	return node`,
	to: `	if len(node.Finalizers) == 0 { node.Spec.Taints = withoutTaint(node.Spec.Taints, karpenter.UnregisteredTaintKey) }
	return node`,
}, {
	name: "end-before-drained", promise: "a node is drained before its instance is terminated",
	file: "services/lifecycle/internal/termination/drain.go",
	from: `	plan.Drained = len(plan.Waiting) == 0 && now.Sub(n.Began) >= MinDrainTime`,
	to:   `	plan.Drained = now.Sub(n.Began) >= MinDrainTime`,
}, {
	name: "evict-by-delete", promise: "PodDisruptionBudgets are respected",
	file: "services/lifecycle/internal/effect/executor.go",
	from: `d.Client.Evict(ctx, cluster.KeyOf(e.Pod), e.Pod.UID)`,
	to:   `d.Client.Delete(ctx, cluster.Pods, cluster.KeyOf(e.Pod), e.Pod.UID)`,
}, {
	name: "grace-too-soon", promise: "PodDisruptionBudgets are respected", seed: 12,
	file: "services/lifecycle/internal/termination/drain.go",
	from: `n.Deadline.Sub(now) > podspec.Grace(pod) {`,
	to:   `n.Deadline.Sub(now) > podspec.Grace(pod)+10*time.Second {`,
}, {
	name: "protection-passed-over", promise: "protected pods are not evicted",
	file: "services/lifecycle/internal/termination/drain.go",
	from: `podspec.Protected(pod, now); !protected &&`,
	to:   `podspec.Protected(pod, now); (true || protected) &&`,
}, {
	name: "duration-not-read", promise: "protected pods are not evicted",
	file: "shared/planning/podspec/disrupt.go",
	from: `	return until, now.Before(until), ""`,
	to:   `	return until, false, ""`,
}, {
	name: "duration-for-ever", promise: "every drain completes or names a blocking pod",
	file: "shared/planning/podspec/disrupt.go",
	from: `	return until, now.Before(until), ""`,
	to:   `	return until, true, ""`,
}, {
	name: "stuck-in-silence", promise: "every drain completes or names a blocking pod",
	file: "services/lifecycle/internal/nodeclaim/draining.go",
	from: `	if len(blockers) > 0 {`,
	to:   `	if len(blockers) > len(plan.Waiting) {`,
}, {
	name: "silence-is-absence", promise: "no notice of an owned instance is foreign",
	file: "services/lifecycle/notice.go",
	from: `		if err != nil && !fault.Is(err, fault.Missing) {
			return nil, err
		}
	}
	wanted := &claimSearch{instance: instanceID}
	err := s.claimSearches.Do(ctx, wanted)
	return wanted.found, err`,
	to: `	}
	wanted := &claimSearch{instance: instanceID}
	_ = s.claimSearches.Do(ctx, wanted)
	return wanted.found, nil`,
}, {
	name: "no-list-is-empty", promise: "an instance is terminated only if its NodeClaim requests it",
	file: "services/lifecycle/inventory.go",
	from: `	if err != nil {
		return fmt.Errorf("listing NodeClaims for the inventory: %w", err)
	}`,
	to: `	_ = err`,
}, {
	name: "409-is-done", promise: "a handled notice deletes the NodeClaim",
	file: "services/lifecycle/internal/effect/executor.go",
	from: `cause == nil && fault.Is(err, fault.Conflict)`,
	to:   `fault.Is(err, fault.Conflict)`,
}, {
	name: "429-is-done", promise: "a handled notice deletes the NodeClaim", seed: 146,
	file: "services/lifecycle/internal/effect/executor.go",
	from: `fault.Is(err, fault.Missing) || cause`,
	to:   `fault.Is(err, fault.Missing, fault.Throttled) || cause`,
}, {
	name: "500-is-done", promise: "a handled notice deletes the NodeClaim",
	file: "services/lifecycle/internal/effect/executor.go",
	from: `fault.Is(err, fault.Missing) || cause`,
	to:   `fault.Is(err, fault.Missing, fault.Unknown) || cause`,
}, {
	name: "in-flight-is-free", promise: "no price limit is exceeded",
	file: "shared/launchspec/claim.go",
	from: `planning.PriceQuantity(dearest)`,
	to:   `planning.PriceQuantity(dearest * 0)`,
}, {
	name: "drained-before-replaced", promise: "replacements are initialized before deletion",
	file: "services/lifecycle/internal/disruption/proposal.go",
	from: `		case c == nil || !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized):`,
	to:   `		case c == nil:`,
}, {
	// Disruption counts the nodes of a snapshot, and lifecycle the live nodes: neither alone
	// overdraws a budget that the other heeds.
	name: "budget-of-another-time", promise: "no disruption budget is exceeded",
	file: "shared/karpenter/budget/budget.go",
	from: `	if !when.isActive(now) {`,
	to:   `	if !when.isActive(now) || now.Second()%2 == 0 {`,
}, {
	name: "moved-before-not-now", promise: "the eviction rate is respected", seed: 219,
	file: "services/disruption/internal/thresholds/evictions.go",
	from: `m.moved[w]+sum[w] > most {`,
	to:   `m.moved[w] > most {`,
}, {
	name: "a-name-is-a-pod", promise: "every pod runs, and every drain completes or names a blocking pod",
	file: "services/watcher/internal/collect/state.go",
	from: `	s.isCurrent = false
	s.starts.trackPod(old, pod)`,
	to: `	if old != nil && pod != nil && old.Spec.NodeName != "" && pod.Spec.NodeName == "" { pod = pod.DeepCopy(); pod.Spec.NodeName = old.Spec.NodeName }
	s.isCurrent = false
	s.starts.trackPod(old, pod)`,
}, {
	// A trimmed object has no version, so two of them always have the same.
	name: "relist-by-version", promise: "a batch contains no running pod", seed: 20,
	file: "shared/cluster/store.go",
	from: `	for _, object := range list {
		s.putLocked(object)
	}`,
	to: `	for _, object := range list {
		if old := s.objects[KeyOf(object)]; old == nil || old.GetResourceVersion() != object.GetResourceVersion() || old.GetUID() != object.GetUID() {
			s.putLocked(object)
		}
	}`,
}, {
	name: "outbox-read-after-count", promise: "TestAdmissionComparesCountedOutboxVersion", in: "./services/lifecycle",
	file: "services/lifecycle/admit.go",
	from: `	next.State, next.Plan, next.Since = outbox.Applying, b.Plan.Digest, s.Now()
	next.Claims, next.UIDs = admission.Claims, findUIDs(admission.Claims, plan, claims)
`,
	to: `	next.State, next.Plan, next.Since = outbox.Applying, b.Plan.Digest, s.Now()
	next.Claims, next.UIDs = admission.Claims, findUIDs(admission.Claims, plan, claims)
	if held, err = outbox.Read(ctx, s.Client, s.Namespace); err != nil { return held, err }
`,
}, {
	name: "new-leader-counts-its-cache", promise: "TestAdmissionCountsWithLaggingCache", in: "./services/lifecycle",
	file: "services/lifecycle/countedclaims.go",
	from: `	if k.outbox != held.UID() || k.seq+1 != held.Seq {
		return nil, false
	}`,
	to: `	if k.outbox != "" && k.outbox != held.UID() { return nil, false }
	if k.unseen == nil { k.unseen = map[string]*karpenter.NodeClaim{} }`,
}, {
	name: "other-plans-not-counted", promise: "TestAdmissionCountsWithLaggingCache", in: "./services/lifecycle",
	file: "services/lifecycle/countedclaims.go",
	from: `	if k.outbox != held.UID() || k.seq+1 != held.Seq {`,
	to:   `	if k.outbox != held.UID() {`,
}, {
	name: "created-not-counted", promise: "TestAdmissionCountsWithLaggingCache", in: "./services/lifecycle",
	file: "services/lifecycle/admit.go",
	from: `		s.counted.completePlan(held, created, s.Cache)`,
	to:   `		s.counted.completePlan(held, nil, s.Cache)`,
}, {
	name: "abandoned-not-counted", promise: "TestAdmissionCountsClaimOfAbandonedPlan", in: "./services/lifecycle",
	file: "services/lifecycle/countedclaims.go",
	from: `k.seq+1 == held.Seq && !others {`,
	to:   `k.seq+1 == held.Seq && (!others || true) {`,
}, {
	name: "abandoned-beyond-limits", promise: "TestAdmit", in: "./services/lifecycle/internal/admission",
	file: "services/lifecycle/internal/admission/admission.go",
	from: `present.Complete(c) && fitsLimits(c, pools, usage, ledger) {`,
	to:   `present.Complete(c) && (fitsLimits(c, pools, usage, ledger) || true) {`,
}, {
	name: "end-by-the-cache", promise: "TestDeletedReplacementKeepsOldNode", in: "./services/lifecycle",
	file: "services/lifecycle/disruption.go",
	from: `	if err != nil || progress != disruption.Ready {
		return err
	}
	if len(p.Replacements) > 0 {`,
	to: `	_, _ = progress, err
	if len(p.Replacements) > 0 {`,
}, {
	name: "given-up-by-uid", promise: "TestClaimAdmittedBeforeItsRemovalStays", in: "./services/lifecycle",
	file: "services/lifecycle/internal/nodeclaim/nodeclaim.go",
	from: `Why: "its plan was abandoned", Read: v.Claim}`,
	to:   `Why: "its plan was abandoned"}`,
}, {
	name: "refused-before-blamed", promise: "TestUnavailableIsRecordedBeforeDeletion", in: "./services/lifecycle",
	file: "services/lifecycle/launchresult.go",
	from: `	if err := s.recordResult(ctx, claims, b, e.Time); err != nil || unbound`,
	to:   `	if err := s.recordResult(ctx, claims, b, e.Time); unbound`,
}, {
	name: "unspent-is-refused", promise: "TestPartialLaunchResultDeletesNothing", in: "./services/lifecycle",
	file: "services/lifecycle/launchresult.go",
	from: `	if !b.Spent && len(b.Instances) > 0 {`,
	to:   `	if !b.Spent && len(b.Instances) > len(claims) {`,
}, {
	name: "held-is-begun", promise: "TestReplicaPausedAfterMark", in: "./services/lifecycle",
	file: "services/lifecycle/confirmation.go",
	from: `		return checkConfirmed(candidates[i].Claim, id, replacements)`,
	to: `		_ = id
		return nil`,
}, {
	name: "reservations-not-counted", promise: "TestLateConfirmation", in: "./services/lifecycle",
	file: "services/lifecycle/internal/disruption/proposal.go",
	from: `[planning.ReservationAnnotation] != "" && planning.ReadProposal(c) != nil && !own(c)`,
	to:   `[planning.ReservationAnnotation] == "never" && planning.ReadProposal(c) != nil && !own(c)`,
}, {
	name: "written-is-begun", promise: "TestNoNodeIsTaintedBeforeAllClaimsAreMarked", in: "./services/lifecycle",
	file: "services/lifecycle/proposal.go",
	from: `	return noted, checkConfirmed(noted, p.ID, replacements)`,
	to:   `	return noted, nil`,
}, {
	name: "one-unbound-stops-all", promise: "no orphaned instance runs for more than 90 s",
	file: "services/lifecycle/inventory.go",
	from: `	unbound := s.bindListed(ctx, e, findings.Unbound)
`,
	to: `	unbound := s.bindListed(ctx, e, findings.Unbound)
	if unbound != nil { return unbound }
`,
}, {
	name: "an-outcome-is-believed", promise: "TestForgedLaunchResultIsComparedLive", in: "./services/lifecycle",
	file: "services/lifecycle/binding.go",
	from: `	orphans, held := findUnbound(orphans, claims)
`,
	to: `	_, held := findUnbound(orphans, nil)
`,
}, {
	name: "an-orphan-by-name", promise: "an instance is terminated only if its NodeClaim requests it",
	file: "services/launcher/instances.go",
	from: `	if b.Claim == "" || b.ClaimUID == "" {
`,
	to: `	if false {
`,
}, {
	name: "gone-is-believed", promise: "TestForgedTerminationsAreLimited", in: "./services/lifecycle",
	file: "services/lifecycle/notice.go",
	from: `	if !s.expectsTermination(found) {
`,
	to: `	if false {
`,
}, {
	// A document of a newer version has fields that an older one does not know.
	name: "unknown-field-is-poison", promise: "TestVersionsMeet", in: "./integration/suites/sim",
	file: "shared/blob/document.go",
	from: `	if err := json.Unmarshal(text, doc); err != nil {
		return fault.E("decoding "`,
	to: `	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(doc); err != nil {
		return fault.E("decoding "`,
}, {
	name: "terminated-without-credit", promise: "TestTerminateFirst", in: "./services/disruption",
	file: "services/disruption/terminatefirst.go",
	from: `	if !p.checkEvictedPlaced(a, after).IsNone() {
`,
	to: `	if false {
`,
}, {
	name: "credit-of-two", promise: "TestFullReservations", in: "./shared/planning/solver",
	file: "shared/planning/solver/simulation.go",
	from: `s.baseline.types.CreditReservation(reservation, 1)`,
	to:   `s.baseline.types.CreditReservation(reservation, 2)`,
}, {
	name: "credit-for-an-unavailable-reservation", promise: "TestFullReservations", in: "./shared/planning/solver",
	file: "shared/planning/instancetypes/reservation.go",
	from: `		out[i].Offerings[at].ReservationCapacity += instances
`,
	to: `		out[i].Offerings[at].ReservationCapacity += instances
		out[i].Offerings[at].Available = true
`,
}, {
	name: "terminated-before-the-refill", promise: "TestTerminateFirstThroughAllServices", in: "./integration/suites/sim",
	file: "services/disruption/terminatefirst.go",
	from: `	if missing >= allowed && a.nodes[0].Node.Initialized {
`,
	to: `	if missing > allowed+1 {
`,
}, {
	name: "repair-breaker-off", promise: "TestRepair", in: "./services/disruption",
	file: "services/disruption/repair.go",
	from: `		if repair.Exceeds(*limit, unhealthy[value], count) {
`,
	to: `		if repair.Exceeds(*limit, 0, count) {
`,
}, {
	name: "repair-ignores-budgets", promise: "TestRepair", in: "./services/disruption",
	file: "services/disruption/methods.go",
	from: `	case (m != Repair || nodes[0].Node.Initialized) && !p.fitsBudgets(nodes, out.Reason):
`,
	to: `	case m != Repair && !p.fitsBudgets(nodes, out.Reason):
`,
}, {
	name: "repair-extends-drain", promise: "TestRepairLimitsDrain", in: "./services/lifecycle",
	file: "shared/karpenter/repair/match.go",
	from: `	if d.GracePeriod != nil && claim != nil && *claim < *d.GracePeriod {
`,
	to: `	if d.GracePeriod != nil && claim != nil && *claim > *d.GracePeriod {
`,
}, {
	name: "full-is-unavailable", promise: "TestReservationsLeft", in: "./shared/planning/instancetypes",
	file: "shared/planning/unavailable.go",
	from: ` && !u.IsReservationFull()
	})`,
	to: `
	})`,
}, {
	name: "unchanged-count-is-old", promise: "TestReservationsLeft", in: "./shared/planning/instancetypes",
	file: "shared/planning/snapshot.go",
	from: `; counted.Before(oldest) {
		return oldest`,
	to: `; counted.Before(oldest) && s == nil {
		return oldest`,
}, {
	name: "device-offered-twice", promise: "no device is allocated twice",
	file: "shared/planning/devices/allocator.go",
	from: `	if len(allocation.claims) > 0 {
		a.usage.commit`,
	to: `	if len(allocation.claims) > 99 {
		a.usage.commit`,
}, {
	name: "template-of-initialized", promise: "no device is allocated twice",
	file: "shared/planning/solver/claims.go",
	from: `	if e.node.Claim == "" || e.node.Initialized {
		instanceType`,
	to: `	if e.node.Claim == "" {
		instanceType`,
}, {
	name: "leaving-claims-stay", promise: "TestLeavingPods", in: "./shared/planning/devices",
	file: "shared/planning/devices/allocator.go",
	from: `	return len(object.Status.ReservedFor) > 0
`,
	to: `	return false
`,
}, {
	name: "joined-claims-float", promise: "TestJoinedNodesHaveDevices", in: "./shared/planning/solver",
	file: "shared/planning/solver/projectdevices.go",
	from: `			pinClaim(out.Claims, &n.allocations[i], n.name, joinedType)
`,
	to: `			_, _ = pinClaim, i
`,
}, {
	name: "deletion-ranks-reversed", promise: "TestListCosts", in: "./services/lifecycle/internal/deletioncost",
	file: "services/lifecycle/internal/deletioncost/nodecost.go",
	from: `formatRank(i-len(r.Ranked))`,
	to:   `formatRank(-1-i)`,
}, {
	name: "user-deletion-cost-kept", promise: "TestDeletionCosts", in: "./services/lifecycle",
	file: "services/lifecycle/internal/deletioncost/nodecost.go",
	from: `		if has == (c.Value != nil) && (!has || value == *c.Value) {
`,
	to: `		if has || c.Value == nil || value == *c.Value {
`,
}, {
	name: "deletion-cost-on-any-pod", promise: "only pods of ReplicaSets have a deletion cost",
	file: "services/lifecycle/internal/deletioncost/nodecost.go",
	from: `	return isControlledBy(pod, "apps/v1", "ReplicaSet") && pod`,
	to:   `	return pod`,
}, {
	name: "slots-of-planned-nodes-free", promise: "no plan exceeds a reservation",
	file: "shared/planning/instancetypes/reservation.go",
	from: `			out[id] = max(0, out[id]-1)`,
	to:   `			out[id] = max(0, out[id])`,
}, {
	name: "repair-drains-for-ever", promise: "the drain of a repair is limited",
	file: "services/lifecycle/disruption.go",
	from: `	if p.GracePeriod == nil {
		return c, nil`,
	to: `	if p.GracePeriod != nil {
		return c, nil`,
}, {
	name: "default-spread-for-some", promise: "pods have the default spread constraints",
	file: "shared/planning/podspec/defaultspread.go",
	from: `		if hasLabels(pod.Labels, service.Spec.Selector) {
			merge(`,
	to: `		if hasLabels(service.Spec.Selector, pod.Labels) && pod.Labels["app"] != "web" {
			merge(`,
}, {
	name: "old-selector-stays", promise: "TestDefaultSpread", in: "./services/watcher/internal/collect",
	file: "services/watcher/internal/collect/defaultspread.go",
	from: `		clear(f.shared)
	} else {`,
	to: `		_ = f.shared
	} else {`,
}, {
	name: "expression-of-one-type", promise: "every pod runs, and every drain completes or names a blocking pod",
	file: "shared/planning/instancetypes/instancetypes.go",
	from: `expression.Resolve(types[i], config)`,
	to:   `expression.Resolve(types[0], config)`,
}, {
	name: "expression-not-launched", promise: "nodes have the results of expressions",
	file: "shared/launchspec/template.go",
	from: `catalog.MaxPods(m.hardware, config)`,
	to:   `catalog.MaxPods(m.hardware, g.config)`,
}}
