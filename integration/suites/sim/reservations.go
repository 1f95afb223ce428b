package sim

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// reservedType is the instance type of the capacity reservations. That of the default NodePool has reservedCount
	// instances.
	reservedType, reservedCount = "m6g.large", 3
	// bookedWorkload is the Deployment, NodePool and class of the other reservation, which has bookedCount instances. Each
	// of its pods needs one, so that no replacement of a node fits while the pods run.
	bookedWorkload, bookedCount = "booked", 2
)

// addReservation adds a capacity reservation that the class selects, and lets the NodePool use it.
func addReservation(w *embedded.EmbeddedCluster, pool *karpenter.NodePool, class *karpenter.EC2NodeClass, instances int, team string) {
	tags := map[string]string{"team": team}
	w.Cloud.AddReservation(cloud.Reservation{InstanceType: reservedType, Zone: w.AWS.Subnets[0].Zone, Available: instances, Tags: tags})
	class.Spec.CapacityReservationSelectorTerms = []karpenter.CapacityReservationSelectorTerm{{Tags: tags}}
	for i := range pool.Spec.Template.Spec.Requirements {
		if r := &pool.Spec.Template.Spec.Requirements[i]; r.Key == karpenter.CapacityTypeLabelKey {
			r.Values = append(r.Values, karpenter.CapacityTypeReserved)
		}
	}
}

// newBookedObjects returns the Deployment that runs only in its reservation, with its NodePool and class.
func newBookedObjects(w *embedded.EmbeddedCluster, kubelet karpenter.KubeletConfiguration) []cluster.Object {
	class, pool, pods := newNodeClass(w), newNodePool(bookedWorkload, 8, 4), newDeployment(bookedWorkload, 1200)
	class.Name, class.Spec.Kubelet = bookedWorkload, kubelet
	spec := &pool.Spec.Template.Spec
	spec.NodeClassRef.Name = bookedWorkload
	spec.Taints = []corev1.Taint{{Key: bookedWorkload, Effect: corev1.TaintEffectNoSchedule}}
	for i := range spec.Requirements {
		if r := &spec.Requirements[i]; r.Key == karpenter.CapacityTypeLabelKey {
			r.Values = nil
		}
	}
	addReservation(w, pool, class, bookedCount, bookedWorkload)
	pods.Spec.Template.Spec.NodeSelector = map[string]string{karpenter.NodePoolLabelKey: bookedWorkload}
	pods.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: bookedWorkload, Operator: corev1.TolerationOpExists}}
	return []cluster.Object{class, pool, pods}
}

// fillReservation lets another account use up to all free instances of a reservation for a while.
func (c *chaos) fillReservation() {
	all, err := c.world.Cloud.DescribeReservations(context.Background())
	if err != nil || len(all) == 0 {
		return
	}
	r := all[c.random.IntN(len(all))]
	if r.Available == 0 {
		return
	}
	count := 1 + c.random.IntN(r.Available)
	c.useReservation(r.ID, count, c.drawDuration(1, 180))
}

// fillBeforeLaunch lets another account use all free instances of the reservation into which an intent is about to be launched,
// for a while, in three of four cases: after the catalogue has counted them. Other launches, and repeated requests of an intent that
// has instances, leave reservations alone, because plans avoid full ones.
func (c *chaos) fillBeforeLaunch(intent string) {
	id := c.reservationOf(intent)
	isLaunched := slices.ContainsFunc(c.world.Cloud.Records(), func(r memcloud.Record) bool { return r.Tags[intentTag] == intent })
	if id == "" || isLaunched || c.aimed.IntN(4) == 0 {
		return
	}
	if count := c.world.Cloud.FillReservation(id); count > 0 {
		c.faults["reservation filled before a launch"]++
		c.trackReservation(id, count, time.Duration(30+c.aimed.IntN(90))*time.Second)
	}
}

// reservationOf returns the reservation of an intent's NodeClaims; empty for none.
func (c *chaos) reservationOf(intent string) string {
	for _, o := range c.listObjects(cluster.NodeClaims) {
		if claim := o.(*karpenter.NodeClaim); claim.Annotations[intentTag] == intent {
			return requiredReservation(claim.Spec)
		}
	}
	return ""
}

// useReservation lets another account use this many instances of a reservation.
func (c *chaos) useReservation(id string, count int, period time.Duration) {
	c.world.Cloud.UseReservation(id, count)
	c.trackReservation(id, count, period)
}

// trackReservation counts the instances of another account, and ends them later.
func (c *chaos) trackReservation(id string, count int, period time.Duration) {
	c.checker.usedByOthers[id] += count
	c.endings = append(c.endings, ending{c.world.Now().Add(period), func() {
		c.world.Cloud.UseReservation(id, -count)
		c.checker.usedByOthers[id] -= count
	}})
}

// reclaimInstance interrupts an instance in a reservation.
func (c *chaos) reclaimInstance() {
	for _, r := range c.world.Cloud.Records() {
		if r.Reservation != "" && r.Ended.IsZero() && c.world.Cloud.Reclaim(r.ID) {
			return
		}
	}
}

// reclaimReservation makes all further launches into the default NodePool's reservation fail.
func (c *chaos) reclaimReservation() {
	all, err := c.world.Cloud.DescribeReservations(context.Background())
	if err == nil && len(all) > 0 && c.random.IntN(4) == 0 {
		c.world.Cloud.ReclaimReservation(all[0].ID)
	}
}

// reservedBy returns the size of the reservation of a NodePool.
func reservedBy(pool string) int {
	if pool == bookedWorkload {
		return bookedCount
	}
	return reservedCount
}

// checkReservations checks that no reservation has more instances than its size, together with those of other accounts.
func (c *checker) checkReservations(records []memcloud.Record) {
	count := map[string]int{}
	for _, r := range records {
		if r.Reservation == "" || !r.Gone.IsZero() {
			continue
		}
		count[r.Reservation]++
		c.occurrences["ran in a reservation"] = 1
		others := c.usedByOthers[r.Reservation]
		if pool := r.Tags[karpenter.NodePoolLabelKey]; count[r.Reservation]+others > reservedBy(pool) {
			c.reportViolation("no reservation is exceeded", "the reservation %s of NodePool %s has %d instances, and %d of other accounts", r.Reservation, pool, count[r.Reservation], others)
		}
	}
}

// requiredReservation returns the reservation into which a NodeClaim is launched; empty for none.
func requiredReservation(spec karpenter.NodeClaimSpec) string {
	for _, r := range spec.Requirements {
		if r.Key == karpenter.LabelCapacityReservationID && len(r.Values) == 1 {
			return r.Values[0]
		}
	}
	return ""
}

// checkPlannedReservations checks that the NodeClaims of an admitted plan fit into their reservations, together with
// the NodeClaims that the batch has and whose instances are not terminated.
func (c *checker) checkPlannedReservations(batchDigest, planDigest string) {
	if !c.features.reservation {
		return
	}
	count, pools := map[string]int{}, map[string]string{}
	for _, claim := range c.readPlannedClaims(planDigest) {
		if claim.reservation != "" {
			count[claim.reservation]++
			pools[claim.reservation] = claim.pool
		}
	}
	var batch deviceBatch
	if len(count) == 0 || !c.readBatch(batchDigest, &batch) {
		return
	}
	c.occurrences["plan for a reservation"]++
	ended := map[string]bool{}
	for _, r := range c.world.Cloud.Records() {
		for _, claim := range c.claimsOfInstance(&r) {
			ended[claim.Name] = ended[claim.Name] || !r.Ended.IsZero()
		}
	}
	for _, n := range batch.Snapshot.Nodes {
		if claim := c.disruptions.claims[n.Claim]; claim != nil && !ended[n.Claim] {
			count[requiredReservation(claim.Spec)]++
		}
	}
	for id, pool := range pools {
		if count[id] > reservedBy(pool) {
			c.reportViolation("no plan exceeds a reservation", "plan %s needs %d instances of the reservation %s of NodePool %s", planDigest, count[id], id, pool)
		}
	}
}
