package migrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/drift"
)

// PoolAdoption describes what happens to a NodePool's nodes when Joist takes over.
type PoolAdoption struct {
	Name string `json:"name"`
	// Managed is false for a NodePool of another provider's node class, which Joist leaves alone.
	Managed bool `json:"managed"`
	// NodeClaims and Nodes are how many there are. All are adopted.
	NodeClaims int `json:"nodeClaims"`
	Nodes      int `json:"nodes"`
	// Rehashed is how many NodeClaims get hashes of the current version, without drift.
	Rehashed int `json:"rehashed"`
	// Drifted are the NodeClaims that differ from the NodePool or its EC2NodeClass under Joist's rules.
	Drifted []Drifted `json:"drifted"`
}

// Drifted is a NodeClaim that would be replaced within the NodePool's budgets.
type Drifted struct {
	NodeClaim string `json:"nodeClaim"`
	Reason    string `json:"reason"`
	// Already reports that Karpenter has found it drifted, too.
	Already bool `json:"already"`
}

// pools returns all NodePools with their nodes.
func (f MigrationFacts) pools() []PoolAdoption {
	out := []PoolAdoption{}
	for i := range f.Pools {
		out = append(out, f.describePool(&f.Pools[i]))
	}
	slices.SortFunc(out, func(a, b PoolAdoption) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// describePool evaluates drift as lifecycle does once it has written the hashes.
func (f MigrationFacts) describePool(pool *karpenter.NodePool) PoolAdoption {
	claims := f.claimsOf(pool.Name)
	out := PoolAdoption{Name: pool.Name, Managed: pool.IsManaged(), NodeClaims: len(claims), Drifted: []Drifted{}}
	for i := range f.Nodes {
		if f.Nodes[i].Labels[karpenter.NodePoolLabelKey] == pool.Name {
			out.Nodes++
		}
	}
	if !out.Managed {
		return out
	}
	hashed, class, err := f.withHashes(pool)
	if err != nil {
		return out // checkManifests reports objects that have no hash.
	}
	for _, c := range claims {
		if c.DeletionTimestamp != nil {
			continue
		}
		next, changed := withCurrentHashes(c, pool, hashed, class)
		if changed {
			out.Rehashed++
		}
		view := drift.View{Claim: next, Pool: hashed, Class: class, Reservations: true, Now: f.Now}
		if reason := drift.Reason(view); reason != "" {
			out.Drifted = append(out.Drifted, Drifted{NodeClaim: c.Name, Reason: reason, Already: c.Status.Conditions.IsTrue(karpenter.ConditionTypeDrifted)})
		}
	}
	return out
}

// MarkDrifted sets in a snapshot which nodes drift under Joist, and returns their names. Without the
// facts the snapshot keeps the drift that the active controller found.
func (f MigrationFacts) MarkDrifted(s *planning.Snapshot) []string {
	reasons, evaluated := map[string]string{}, len(f.missing([]Fact{NodePools, NodeClasses, NodeClaims})) == 0
	for _, p := range f.pools() {
		for _, d := range p.Drifted {
			reasons[d.NodeClaim] = d.Reason
		}
	}
	s.Nodes = slices.Clone(s.Nodes)
	var names []string
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if reason := reasons[n.Claim]; evaluated && n.Claim != "" {
			switch {
			case reason == "":
				n.Drift = nil
			case n.Drift == nil:
				n.Drift = &planning.Drift{Reason: reason, Since: s.TakenAt}
			}
		}
		if n.Drift != nil {
			names = append(names, n.Name)
		}
	}
	return names
}

// withHashes returns copies of a NodePool and its class with the hashes that Joist writes; the class
// may be nil.
func (f MigrationFacts) withHashes(pool *karpenter.NodePool) (*karpenter.NodePool, *karpenter.EC2NodeClass, error) {
	hash, err := pool.Hash()
	if err != nil {
		return nil, nil, err
	}
	hashed, class := pool.DeepCopy(), f.findClass(pool)
	setHash(hashed, poolHash, hash)
	if class == nil {
		return hashed, nil, nil
	}
	if hash, err = class.Hash(f.CertificateAuthority); err != nil {
		return nil, nil, err
	}
	class = class.DeepCopy()
	// Once Joist acts, the hash on the class is its own, also if the authority is not known here.
	isJoists := f.active() == Joist && class.Annotations[classHash.version] == classHash.current
	if f.CertificateAuthority != "" && !isJoists {
		setHash(class, classHash, hash)
	}
	return hashed, class, nil
}

// hashKeys are the annotations of a hash and its version, and the current version.
type hashKeys struct{ hash, version, current string }

var (
	poolHash  = hashKeys{karpenter.NodePoolHashAnnotationKey, karpenter.NodePoolHashVersionAnnotationKey, karpenter.NodePoolHashVersion}
	classHash = hashKeys{karpenter.EC2NodeClassHashAnnotationKey, karpenter.EC2NodeClassHashVersionAnnotationKey, karpenter.EC2NodeClassHashVersion}
)

func setHash(o cluster.Object, keys hashKeys, hash string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[keys.hash], annotations[keys.version] = hash, keys.current
	o.SetAnnotations(annotations)
}

// withCurrentHashes returns the NodeClaim with the hashes that lifecycle would write, and reports
// whether any is written. A hash of another version is not comparable, so the NodeClaim gets that of
// its NodePool and class, unless it has drifted already.
func withCurrentHashes(c *karpenter.NodeClaim, before, pool *karpenter.NodePool, class *karpenter.EC2NodeClass) (*karpenter.NodeClaim, bool) {
	_, evaluated := c.Status.Conditions.Get(karpenter.ConditionTypeDrifted)
	drifted := c.Status.Conditions.IsTrue(karpenter.ConditionTypeDrifted)
	next, changed := c.DeepCopy(), false
	rehash := func(keys hashKeys, of cluster.Object, keep bool) {
		if next.Annotations[keys.version] == keys.current {
			return
		}
		hash := of.GetAnnotations()[keys.hash]
		if keep {
			hash = next.Annotations[keys.hash]
		}
		setHash(next, keys, hash)
		changed = true
	}
	if before.Annotations[poolHash.version] != poolHash.current {
		rehash(poolHash, pool, evaluated)
	}
	if class != nil && class.Annotations[classHash.version] == classHash.current {
		rehash(classHash, class, drifted)
	}
	return next, changed
}

// checkManifests checks that Joist accepts the NodePools and EC2NodeClasses of the cluster.
func checkManifests(f MigrationFacts) MigrationStep {
	var refused, warned, reasons, notes []string
	for _, r := range f.Refused {
		if r.Warning {
			warned, notes = append(warned, r.Object), append(notes, r.Object+": "+r.Reason)
		} else {
			refused, reasons = append(refused, r.Object), append(reasons, r.Object+": "+r.Reason)
		}
	}
	switch {
	case len(refused) > 0:
		return blocked("Joist does not accept "+strings.Join(reasons, "; "), "correct these objects, or remove them if they are unused", refused...)
	case len(f.Pools) == 0:
		return ready("the cluster has no NodePool: Joist launches no nodes", "joist plan -f deploy/quickstart shows what one would launch")
	case len(warned) > 0:
		return done("Joist accepts all NodePools and EC2NodeClasses; note "+strings.Join(notes, "; "), warned...)
	}
	return done("Joist accepts " + simulate.FormatCount(len(f.Pools), "NodePool") + " and " + simulate.FormatCount(len(f.Classes), "EC2NodeClass"))
}

// checkNodes checks that the nodes are adopted without drift.
func checkNodes(f MigrationFacts) MigrationStep {
	claims, rehashed, already := 0, 0, 0
	var fresh, foreign []string
	for _, p := range f.pools() {
		if !p.Managed {
			foreign = append(foreign, "nodepool/"+p.Name)
			continue
		}
		claims, rehashed = claims+p.NodeClaims, rehashed+p.Rehashed
		for _, d := range p.Drifted {
			if d.Already {
				already++
			} else {
				fresh = append(fresh, fmt.Sprintf("nodeclaim/%s (%s)", d.NodeClaim, d.Reason))
			}
		}
	}
	if len(fresh) > 0 {
		return blocked(fmt.Sprintf("%d of %s would drift under Joist and be replaced within the budgets of their NodePools", len(fresh), simulate.FormatCount(claims, "NodeClaim")),
			f.driftFix(), fresh...)
	}
	detail := simulate.FormatCount(claims, "NodeClaim") + " adopted with their nodes, and none replaced"
	if rehashed > 0 {
		detail += fmt.Sprintf("; %d with new hashes, of the current version", rehashed)
	}
	if already > 0 {
		detail += fmt.Sprintf("; drifted under Karpenter, and replaced by Joist as Karpenter would: %d", already)
	}
	if f.Installation.CertificateAuthority == "" && f.active() != Joist && claims > 0 {
		detail += "; this assumes that EKS has the certificate authority of the pods (eks:DescribeCluster was not read)"
	}
	if len(foreign) > 0 {
		detail += "; Joist leaves NodePools of other providers alone"
	}
	return done(detail, foreign...)
}

// driftFix returns how to avoid the replacement of nodes.
func (f MigrationFacts) driftFix() string {
	for i := range f.Classes {
		class := &f.Classes[i]
		hash, err := class.Hash(f.CertificateAuthority)
		if err == nil && class.Annotations[classHash.version] == classHash.current && class.Annotations[classHash.hash] != "" && class.Annotations[classHash.hash] != hash {
			return "EC2NodeClass " + class.Name + " has another hash under Karpenter: it was changed and Karpenter has not seen it, or Karpenter has another certificate authority (CLUSTER_CA_BUNDLE); set the same in Joist"
		}
	}
	return "let Karpenter replace them first, or accept it: the budgets of the NodePools limit the pace, and nodes: \"0\" stops it"
}
