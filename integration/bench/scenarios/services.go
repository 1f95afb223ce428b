package scenarios

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// constraint is a scheduling constraint of a deployment.
type constraint struct {
	apply func(*draw, *corev1.Pod)
	// most is the maximum number of replicas of such a deployment; 0 is no limit.
	most int
}

// constrained adds deployments with constraints in these shares.
func constrained(d *draw, s *Scenario, count int, shares []share[constraint]) {
	grouped(d, s, count, func(template *corev1.Pod) (most int) {
		c := pick(d, shares)
		c.apply(d, template)
		return c.most
	})
}

// services adds deployments with typical constraints: about half are spread over zones, a
// fifth keep replicas on different hosts, a tenth stay together in one zone, a tenth in a
// given zone.
func services(d *draw, s *Scenario, count int) {
	const hostsMost = 20 // A service does not need a hundred hosts.
	constrained(d, s, count, []share[constraint]{
		{48, constraint{apply: zonesSpread}},
		{20, constraint{apply: hostsApart, most: hostsMost}},
		{11, constraint{apply: plain}},
		{10, constraint{apply: zoneTogether}},
		{11, constraint{apply: zonal}},
	})
}

// teams adds deployments that share five pools: most take any node or any of an
// architecture; some require the data team's nodes, on-demand, a GPU, or a zone.
func teams(d *draw, s *Scenario, count int) {
	const withGPUsMost = 16 // They are expensive, and their pool's limit should not decide the result.
	constrained(d, s, count, []share[constraint]{
		{25, constraint{apply: onArch(karpenter.ArchitectureAMD64)}},
		{24, constraint{apply: plain}},
		{16, constraint{apply: onArch(karpenter.ArchitectureARM64)}},
		{10, constraint{apply: dataTeam}},
		{10, constraint{apply: reliable}},
		{6, constraint{apply: withGPUs, most: withGPUsMost}},
		{9, constraint{apply: zonal}},
	})
}

func plain(*draw, *corev1.Pod) {}

// own selects the pods of the deployment.
func own(p *corev1.Pod) *metav1.LabelSelector { return selecting(appKey, p.Labels[appKey]) }

func zonesSpread(_ *draw, p *corev1.Pod)  { spread(p, corev1.LabelTopologyZone, own(p)) }
func hostsApart(_ *draw, p *corev1.Pod)   { apart(p, corev1.LabelHostname, own(p)) }
func zoneTogether(_ *draw, p *corev1.Pod) { together(p, corev1.LabelTopologyZone, own(p)) }

// zonal requires a zone, as a volume does.
func zonal(d *draw, p *corev1.Pod) { tied(p, corev1.LabelTopologyZone, oneOf(d, Zones()...)) }

func onArch(arch string) func(*draw, *corev1.Pod) {
	return func(_ *draw, p *corev1.Pod) { tied(p, corev1.LabelArchStable, arch) }
}

// reliable requires on-demand capacity.
func reliable(_ *draw, p *corev1.Pod) {
	affine(p, karpenter.CapacityTypeLabelKey, karpenter.CapacityTypeOnDemand)
}

func dataTeam(_ *draw, p *corev1.Pod) {
	tied(p, teamKey, teamData)
	p.Spec.Tolerations = []corev1.Toleration{{Key: teamKey, Operator: corev1.TolerationOpEqual, Value: teamData}}
}

func withGPUs(d *draw, p *corev1.Pod) {
	cards := resource.MustParse(pick(d, []share[string]{{75, "1"}, {25, "4"}}))
	resources := &p.Spec.Containers[0].Resources
	resources.Requests[karpenter.ResourceNVIDIAGPU] = cards
	resources.Limits = corev1.ResourceList{karpenter.ResourceNVIDIAGPU: cards}
	p.Spec.Tolerations = []corev1.Toleration{{Key: string(karpenter.ResourceNVIDIAGPU), Operator: corev1.TolerationOpExists}}
}
