package launchspec

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/catalog/expression"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec/bootstrap"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// templatePrefix is Karpenter's, so that IAM policies for Karpenter apply.
const templatePrefix = "karpenter.k8s.aws/"

// variant is the values by which templates of one launch differ.
type variant struct {
	image, imageName string
	maxPods, efas    int64
	// reserved has the resources that the kubelet reserves as JSON, because maps are not comparable; empty if the
	// class has no expressions.
	reserved    string
	reservation string
	kind        reservationKind
}

// assignTemplates groups the chosen offers by the template that they need, in the order of the cheapest
// offer. It drops the offers that would need more templates than a fleet call may have.
func (g *recipe) assignTemplates() error {
	g.order, g.offers = nil, map[variant][]offer{}
	chosen := g.choice.offers[:0]
	for _, o := range g.choice.offers {
		v, err := g.variant(o)
		if err != nil {
			return err
		}
		if g.offers[v] == nil {
			if len(g.order) == maxConfigs {
				continue
			}
			g.order = append(g.order, v)
		}
		g.offers[v] = append(g.offers[v], o)
		chosen = append(chosen, o)
	}
	g.choice.offers = chosen
	return nil
}

func (g *recipe) variant(o offer) (variant, error) {
	m, err := g.machine(o.InstanceType)
	if err != nil {
		return variant{}, err
	}
	image, ok := instancetypes.FindImage(m.typ.Labels, g.class.Status.AMIs)
	if !ok {
		return variant{}, fault.F("choosing an image", fault.Bug, "no image of EC2NodeClass %s boots %s", g.class.Name, o.InstanceType)
	}
	config, err := expression.Resolve(m.hardware, g.config)
	if err != nil {
		return variant{}, fault.E("resolving spec.kubelet of EC2NodeClass "+g.class.Name, fault.Invalid, err).
			WithHint("correct the expression, which must give a number for every instance type")
	}
	v := variant{image: image.ID, imageName: image.Name, maxPods: catalog.MaxPods(m.hardware, config), efas: g.efas(m.hardware)}
	if expression.Uses(g.config.Kubelet) {
		if v.reserved, err = encodeReserved(config.Kubelet); err != nil {
			return variant{}, err
		}
	}
	if o.reservation != nil {
		v.reservation, v.kind = o.reservation.ID, o.kind()
	}
	return v, nil
}

// template returns the complete launch template of a variant.
func (g *recipe) template(v variant) (cloud.Template, error) {
	class := g.class
	node, err := g.node(v)
	if err != nil {
		return cloud.Template{}, err
	}
	text, err := bootstrap.Write(g.config.AMIFamily, node)
	if err != nil {
		return cloud.Template{}, err
	}
	profile, err := instanceProfile(class)
	if err != nil {
		return cloud.Template{}, err
	}
	owner := ownerTags(g.cluster.Name, g.pool.Name, class)
	template := cloud.Template{
		ImageID: v.image, UserData: text, InstanceProfile: profile,
		SecurityGroups: securityGroups(class), BlockDevices: BlockDevices(class, g.config.AMIFamily),
		Metadata: Metadata(class.Spec.MetadataOptions, g.catalogue.Region), Monitoring: value(class.Spec.DetailedMonitoring),
		PublicIP: class.Spec.AssociatePublicIPAddress, PrefixCount: class.Spec.IPPrefixCount, IPv6: g.cluster.IPFamily == "ipv6",
		Interfaces: interfaces(class, v.efas), Connections: connections(class), CPU: cpu(class), Enclaves: class.EnclavesEnabled(),
		Placement: placement(class, g.catalogue, g.requirements), Reservation: g.reservation(v), Market: v.kind.market(),
		TagSets: templateTagSets(owner, g.choice.capacityType), Tags: owner,
	}
	template.Name, err = templateName(template)
	return template, err
}

// encodeReserved returns the resources that the kubelet reserves as a part of its settings.
func encodeReserved(k karpenter.ParsedKubelet) (string, error) {
	text, err := json.Marshal(karpenter.ParsedKubelet{KubeReserved: k.KubeReserved, SystemReserved: k.SystemReserved})
	if err != nil {
		return "", fault.E("encoding the kubelet's reserved resources", fault.Bug, err)
	}
	return string(text), nil
}

// kubelet returns the class's settings, parsed and whole, with the resources that the variant reserves.
func (g *recipe) kubelet(v variant) (karpenter.ParsedKubelet, karpenter.KubeletConfiguration, error) {
	if v.reserved == "" {
		return g.config.Kubelet, g.class.Spec.Kubelet, nil
	}
	whole := g.class.Spec.Kubelet.DeepCopy()
	if err := json.Unmarshal([]byte(v.reserved), &whole); err != nil {
		return karpenter.ParsedKubelet{}, nil, fault.E("writing the kubelet's settings", fault.Bug, err)
	}
	parsed, err := whole.Parse()
	return parsed, whole, err
}

// node returns the input for user data. It includes startup taints, and the unregistered taint, which
// keeps pods off until the node has all its labels.
func (g *recipe) node(v variant) (bootstrap.Node, error) {
	parsed, whole, err := g.kubelet(v)
	if err != nil {
		return bootstrap.Node{}, err
	}
	labels := maps.Clone(g.labels)
	labels[karpenter.CapacityTypeLabelKey] = g.choice.capacityType
	spec := g.pool.Spec.Template.Spec
	taints := slices.Concat(spec.Taints, spec.StartupTaints)
	if unregistered := karpenter.UnregisteredTaint(); !slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(&unregistered) }) {
		taints = append(taints, unregistered)
	}
	return bootstrap.Node{
		Cluster: g.cluster, Kubelet: parsed, KubeletConfiguration: whole, MaxPods: v.maxPods,
		Labels: labels, Taints: taints,
		InstanceStore: g.config.InstanceStorePolicy, ImageName: v.imageName, Custom: value(g.class.Spec.UserData),
	}, nil
}

// reservation returns the capacity reservation that instances must use. If the feature gate is on,
// other launches must not use an open reservation, because the plan has counted its capacity for other
// nodes.
func (g *recipe) reservation(v variant) *cloud.ReservationTarget {
	switch {
	case v.reservation != "":
		return &cloud.ReservationTarget{ID: v.reservation, Preference: "capacity-reservations-only"}
	case g.gates.ReservedCapacity:
		return &cloud.ReservationTarget{Preference: "none"}
	default:
		return nil
	}
}

// templateName returns a name with the hash of the content, so that equal templates share one name and
// a changed template gets a new one.
func templateName(template cloud.Template) (string, error) {
	template.Name = ""
	text, err := json.Marshal(template)
	if err != nil {
		return "", fault.E("naming a launch template", fault.Bug, err)
	}
	return templatePrefix + event.DeriveID("template", event.Cluster{}, string(text)), nil
}

func instanceProfile(class *karpenter.EC2NodeClass) (string, error) {
	if name := value(class.Spec.InstanceProfile); name != "" {
		return name, nil
	}
	if class.Status.InstanceProfile == "" {
		return "", fault.F("choosing the instance profile", fault.Invalid, "EC2NodeClass %s has no instance profile yet", class.Name).
			WithHint("check its condition %s", karpenter.ConditionTypeInstanceProfileReady)
	}
	return class.Status.InstanceProfile, nil
}
