package launchspec

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

const (
	// memoryTolerance is the minimum fraction of a type's memory in a plan, of the estimate or of what
	// nodes report, whichever is less. The plan may know other nodes than the snapshot.
	memoryTolerance = 0.9
	// spotTolerance is the minimum fraction of the catalogue's spot price in a plan. The price changes
	// between the plan's catalogue and the latest one.
	spotTolerance = 0.5
)

// Verify derives again what an intent and its NodeClaims must be, from the NodePool, the EC2NodeClass,
// the settings and the overlays of the snapshot and from the catalogue, and compares: launch templates
// with image, user data, instance profile and security groups, subnets, instance types, tags, the
// complete NodeClaims, and what they count for limits. Of the snapshot's nodes only the memory that they
// report is used. Differences are fault.Invalid. The author of a
// plan can only choose among values that these objects allow.
func Verify(planned planning.PlannedIntent, intent Intent, s planning.Snapshot, cat catalog.Catalogue) error {
	if len(planned.Claims) == 0 {
		return unlike("the plan has no NodeClaim")
	}
	pool := slices.IndexFunc(s.NodePools, func(p karpenter.NodePool) bool { return p.Name == intent.NodePool })
	usesClass := func(p *karpenter.NodePool) bool {
		ref := p.Spec.Template.Spec.NodeClassRef
		return p.IsManaged() && ref != nil && ref.Name == intent.NodeClass
	}
	if pool < 0 || !usesClass(&s.NodePools[pool]) {
		return unlike("NodePool %q does not use EC2NodeClass %q", intent.NodePool, intent.NodeClass)
	}
	first := planned.Claims[0].Object
	node := planning.PlannedNode{
		NodePool: intent.NodePool, NodeClass: intent.NodeClass, Requirements: planning.NewNodeClaimRequirements(first.Spec.Requirements),
		Requests: first.Spec.Resources.Requests, MinValuesRelaxed: relaxed(first), DeviceDrivers: karpenter.RequestedDRADrivers(&first),
	}
	return verify(planned, intent, node, s, cat, nil)
}

// verify compares the intent with the node; existing is the NodeClaim if a user created it.
func verify(planned planning.PlannedIntent, intent Intent, node planning.PlannedNode, s planning.Snapshot, cat catalog.Catalogue, existing *karpenter.NodeClaim) error {
	g, err := verifier(planned, intent, node, s, cat, existing)
	if err != nil {
		return err
	}
	for _, check := range []func(planning.PlannedIntent, Intent) error{g.verifyFleet, g.verifyOffers, g.verifyTemplates, g.verifyClaims} {
		if err := check(planned, intent); err != nil {
			return err
		}
	}
	return nil
}

func unlike(format string, args ...any) *fault.Error {
	return fault.F("verifying an intent", fault.Invalid, format, args...)
}

// verifier returns the recipe of the intent, from everything that its author does not choose.
func verifier(planned planning.PlannedIntent, intent Intent, node planning.PlannedNode, s planning.Snapshot, cat catalog.Catalogue, existing *karpenter.NodeClaim) (*recipe, error) {
	if intent.NodePool != planned.NodePool || node.NodePool != planned.NodePool {
		return nil, unlike("the intent is for NodePool %q, but the plan has %q", intent.NodePool, planned.NodePool)
	}
	if intent.NodeClass != node.NodeClass {
		return nil, unlike("the intent is for EC2NodeClass %q, but its NodeClaims have %q", intent.NodeClass, node.NodeClass)
	}
	reporting := s.Nodes
	s.Nodes = nil // The machines have the estimated memory.
	b := builder{batch: planning.Batch{Snapshot: s}, catalogue: cat, existing: existing}
	node.Offerings = nil
	for _, config := range intent.Fleet.Configs {
		for _, o := range config.Overrides {
			node.Offerings = append(node.Offerings, planning.PricedOffering{Offering: event.Offering{InstanceType: o.InstanceType, Zone: o.Zone, CapacityType: intent.Fleet.CapacityType}})
		}
	}
	b.machines = newMachines([]planning.PlannedNode{node}, s, cat)
	g, err := b.lookUp(node)
	if err != nil {
		return nil, unlike("%w", err)
	}
	g.reporting = reporting
	return g, nil
}

func relaxed(claim karpenter.NodeClaim) bool {
	return claim.Annotations[karpenter.NodeClaimMinValuesRelaxedAnnotationKey] == "true"
}

// verifyFleet checks the fields of the fleet call.
func (g *recipe) verifyFleet(planned planning.PlannedIntent, intent Intent) error {
	fleet := intent.Fleet
	switch {
	case intent.ID != planned.ID || fleet.Token != planned.ID:
		return unlike("the document has intent %q with token %q, but the plan has %q", intent.ID, fleet.Token, planned.ID)
	case fleet.Count != len(planned.Claims) || len(intent.Claims) != len(planned.Claims):
		return unlike("the intent launches %d instances for %d NodeClaims, but the plan has %d", fleet.Count, len(intent.Claims), len(planned.Claims))
	case intent.Cluster != g.cluster.Name:
		return unlike("the intent is for cluster %q", intent.Cluster)
	case !sameJSON(fleet.TagSets, fleetTagSets(ownerTags(g.cluster.Name, g.pool.Name, g.class), intent.ID)):
		return unlike("the tags of the fleet differ from those of NodePool %s and EC2NodeClass %s", g.pool.Name, g.class.Name)
	case fleet.Context != "" && fleet.Context != value(g.class.Spec.Context):
		return unlike("the fleet's context differs from that of EC2NodeClass %s", g.class.Name)
	case !slices.Contains(precedence, fleet.CapacityType) || !allows(g.requirements, fleet.CapacityType):
		return unlike("its NodeClaims do not allow the capacity type %q", fleet.CapacityType)
	}
	g.choice.capacityType = fleet.CapacityType
	if g.existing != nil {
		return nil // The requirements are those of the NodeClaim itself.
	}
	return g.verifyRequirements()
}

// verifyRequirements checks that the NodePool allows the requirements of the NodeClaims.
func (g *recipe) verifyRequirements() error {
	template := g.pool.Spec.Template
	allowed := planning.NewNodeClaimRequirements(template.Spec.Requirements).Intersect(planning.NewLabelRequirements(template.Labels)).
		WithRequirement(karpenter.NodePoolLabelKey, planning.In(g.pool.Name)).WithRequirement(karpenter.LabelEC2NodeClass, planning.In(g.class.Name))
	for _, key := range slices.Sorted(maps.Keys(allowed)) {
		asked, ok := g.requirements[key]
		if !ok {
			asked = planning.AnyValue()
		}
		if key != corev1.LabelHostname && !asked.WithMinValues(0).IsSubset(allowed[key].WithMinValues(0)) {
			return unlike("its NodeClaims require %s %s, but NodePool %s allows %s", key, asked, g.pool.Name, allowed[key])
		}
	}
	return nil
}

// verifyOffers compares every override, with its type's facts and its price, with the catalogue and
// the node class.
func (g *recipe) verifyOffers(_ planning.PlannedIntent, intent Intent) error {
	templates := map[string]cloud.Template{}
	for _, template := range intent.Templates {
		templates[template.Name] = template
	}
	for _, config := range intent.Fleet.Configs {
		template, ok := templates[config.Template]
		if !ok {
			return unlike("the launch template %q is not in the document", config.Template)
		}
		for _, override := range config.Overrides {
			o, err := g.verifyOffer(override, template, intent)
			if err != nil {
				return err
			}
			g.choice.offers = append(g.choice.offers, o)
		}
	}
	if len(g.choice.offers) == 0 {
		return unlike("the fleet has no override")
	}
	if intent.Fleet.Target != g.choice.target() {
		return unlike("unknown target %q", intent.Fleet.Target)
	}
	g.labelReservation()
	return nil
}

func (g *recipe) verifyOffer(override cloud.Override, template cloud.Template, intent Intent) (offer, error) {
	m, err := g.machine(override.InstanceType)
	if err != nil {
		return offer{}, unlike("%w", err)
	}
	o := offer{PricedOffering: planning.PricedOffering{Offering: event.Offering{InstanceType: override.InstanceType, Zone: override.Zone, CapacityType: intent.Fleet.CapacityType}}, exotic: m.typ.Exotic, labels: m.typ.Labels}
	inSubnet := func(n karpenter.Subnet) bool { return n.ID == override.SubnetID && n.Zone == override.Zone }
	if override.ImageID != "" || !slices.ContainsFunc(g.class.Status.Subnets, inSubnet) {
		return o, unlike("EC2NodeClass %s has no subnet %s in %s, or the override sets an image", g.class.Name, override.SubnetID, override.Zone)
	}
	if intent.Fleet.CapacityType == cloud.Reserved {
		reservation := func(r karpenter.CapacityReservation) bool {
			return template.Reservation != nil && r.ID == template.Reservation.ID && r.InstanceType == override.InstanceType && r.AvailabilityZone == override.Zone
		}
		at := slices.IndexFunc(g.class.Status.CapacityReservations, reservation)
		if at < 0 {
			return o, unlike("EC2NodeClass %s has no such capacity reservation of %s in %s", g.class.Name, override.InstanceType, override.Zone)
		}
		o.reservation = &g.class.Status.CapacityReservations[at]
	}
	for key, values := range g.requirements {
		if label := o.label(key); label != "" && !values.Has(label) {
			return o, unlike("its NodeClaims do not allow %s=%s, the label of %s in %s", key, label, override.InstanceType, override.Zone)
		}
	}
	return o, g.verifyFacts(o, m, intent)
}

// verifyFacts compares the capacity and the price that limits will count with the catalogue.
func (g *recipe) verifyFacts(o offer, m machine, intent Intent) error {
	facts, derived := intent.Types[o.InstanceType], g.factsOf(m)
	for name, amount := range derived.Capacity {
		said, known := facts.Capacity[name]
		least := amount.AsApproximateFloat64()
		if name == corev1.ResourceMemory {
			least = memoryTolerance * g.lowestMemory(m, amount)
		}
		if !known || said.AsApproximateFloat64() < least {
			return unlike("the intent has type %s with %s of %s, but the catalogue has %s", o.InstanceType, said.String(), name, amount.String())
		}
	}
	for name, amount := range facts.Capacity {
		if amount.Sign() < 0 {
			return unlike("the intent has type %s with %s of %s", o.InstanceType, amount.String(), name)
		}
	}
	if !maps.Equal(facts.Labels, derived.Labels) {
		return unlike("the intent has other labels for type %s than the catalogue", o.InstanceType)
	}
	said, known := intent.Price(o.InstanceType, o.Zone)
	least, sold := m.price(o)
	if o.CapacityType == cloud.Spot {
		least *= spotTolerance
	}
	const noise = 1 - 1e-9
	if !known || !sold || !(said >= least*noise) {
		return unlike("the intent has a price for %s in %s of $%g per hour as %s, which differs from the catalogue", o.InstanceType, o.Zone, said, o.CapacityType)
	}
	return nil
}

// lowestMemory returns the estimated memory of a type, or what nodes of the type and its image report if that is less.
// Kernels that reserve memory, for example for crash dumps, report much less than small types have.
func (g *recipe) lowestMemory(m machine, estimate resource.Quantity) float64 {
	image, _ := instancetypes.FindImage(m.typ.Labels, g.class.Status.AMIs)
	if reported, ok := instancetypes.FindReportedMemory(g.reporting, m.typ.Name, image.ID); ok && reported.Cmp(estimate) < 0 {
		return reported.AsApproximateFloat64()
	}
	return estimate.AsApproximateFloat64()
}

// price returns the price of an offer from catalogue and overlays, in US dollars an hour; false if
// there is no such offering.
func (m machine) price(o offer) (perHour float64, sold bool) {
	reservation := ""
	if o.reservation != nil {
		reservation = o.reservation.ID
	}
	for i := range m.typ.Offerings {
		have := &m.typ.Offerings[i]
		if have.Zone == o.Zone && have.CapacityType == o.CapacityType && have.Reservation == reservation {
			return have.PricePerHour, true
		}
	}
	return 0, false
}

// verifyTemplates writes the launch templates again, and compares their names, which are hashes of the
// content.
func (g *recipe) verifyTemplates(_ planning.PlannedIntent, intent Intent) error {
	if err := g.assignTemplates(); err != nil {
		return unlike("%w", err)
	}
	want := map[string]bool{}
	for _, v := range g.order {
		template, err := g.template(v)
		if err != nil {
			return unlike("%w", err)
		}
		want[template.Name] = true
	}
	for _, template := range intent.Templates {
		name, err := templateName(template)
		if err != nil {
			return err
		}
		if name != template.Name || !want[name] {
			return unlike("launch template %s differs from the one for EC2NodeClass %s and NodePool %s", template.Name, g.class.Name, g.pool.Name)
		}
	}
	return nil
}

// verifyClaims writes the NodeClaims again, and compares them completely. Only the expected pods and
// the batch are taken from the plan.
func (g *recipe) verifyClaims(planned planning.PlannedIntent, intent Intent) error {
	common, err := g.share(origin{intent: intent, ref: planned.Ref})
	if err != nil {
		return err
	}
	for slot, claim := range planned.Claims {
		node := planning.PlannedNode{Requirements: g.requirements, Requests: claim.Object.Spec.Resources.Requests, MinValuesRelaxed: relaxed(claim.Object), DeviceDrivers: karpenter.RequestedDRADrivers(&claim.Object)}
		made := g.claim(&node, common, intent.Claims[slot])
		for _, key := range []string{planning.ExpectedPodsAnnotation, BatchAnnotation} {
			made.Object.Annotations[key] = claim.Object.Annotations[key]
		}
		if !sameJSON(made.Object, claim.Object) || !sameJSON(common.ceiling, claim.Ceiling) {
			return unlike("NodeClaim %s differs from the one for NodePool %s and the intent: %s", claim.Object.Name, g.pool.Name, firstDifference(made.Object, claim.Object))
		}
	}
	return nil
}

// sameJSON reports whether two values have the same JSON.
func sameJSON(a, b any) bool {
	first, err := json.Marshal(a)
	second, other := json.Marshal(b)
	return err == nil && other == nil && bytes.Equal(first, second)
}

// firstDifference returns the first part in which two NodeClaims differ.
func firstDifference(want, got karpenter.NodeClaim) string {
	switch {
	case want.Name != got.Name:
		return "its name differs from " + want.Name
	case !maps.Equal(want.Labels, got.Labels):
		return "its labels differ"
	case !maps.Equal(want.Annotations, got.Annotations):
		return "its annotations differ"
	case !sameJSON(want.Spec, got.Spec):
		return "its spec differs"
	default:
		return "its other metadata or its usage for limits differs"
	}
}
