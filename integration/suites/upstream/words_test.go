package upstream

import (
	"slices"
	"testing"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	awsevents "github.com/aws/karpenter-provider-aws/pkg/cloudprovider/events"
	"github.com/aws/karpenter-provider-aws/pkg/controllers/nodeclass"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	bufferv1beta1 "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpv1alpha1 "sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
	"sigs.k8s.io/karpenter/pkg/controllers/capacitybuffer"
	terminatorevents "sigs.k8s.io/karpenter/pkg/controllers/node/termination/terminator/events"
	"sigs.k8s.io/karpenter/pkg/events"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// The names that users, dashboards and other controllers depend on are equal.
func TestSameConstants(t *testing.T) {
	for _, c := range []struct{ ours, theirs string }{
		{karpenter.NodePoolLabelKey, karpv1.NodePoolLabelKey},
		{karpenter.NodeInitializedLabelKey, karpv1.NodeInitializedLabelKey},
		{karpenter.NodeRegisteredLabelKey, karpv1.NodeRegisteredLabelKey},
		{karpenter.NodeDoNotSyncTaintsLabelKey, karpv1.NodeDoNotSyncTaintsLabelKey},
		{karpenter.CapacityTypeLabelKey, karpv1.CapacityTypeLabelKey},
		{karpenter.LabelEC2NodeClass, awsv1.LabelNodeClass},
		{karpenter.LabelTopologyZoneID, awsv1.LabelTopologyZoneID},
		{karpenter.ArchitectureAMD64, karpv1.ArchitectureAmd64},
		{karpenter.ArchitectureARM64, karpv1.ArchitectureArm64},
		{karpenter.DoNotDisruptAnnotationKey, karpv1.DoNotDisruptAnnotationKey},
		{karpenter.NodePoolHashAnnotationKey, karpv1.NodePoolHashAnnotationKey},
		{karpenter.NodePoolHashVersionAnnotationKey, karpv1.NodePoolHashVersionAnnotationKey},
		{karpenter.NodeClaimTerminationTimestampAnnotationKey, karpv1.NodeClaimTerminationTimestampAnnotationKey},
		{karpenter.NodeClaimMinValuesRelaxedAnnotationKey, karpv1.NodeClaimMinValuesRelaxedAnnotationKey},
		{karpenter.DRADriversAnnotationKey, karpv1.DRADriversAnnotationKey},
		{karpenter.DoNotRepairAnnotationKey, karpv1.DoNotRepairAnnotationKey},
		{karpenter.DisruptionCostAnnotationKey, karpv1.DisruptionCostAnnotationKey},
		{karpenter.RebootPreBootIDAnnotationKey, karpv1.RebootPreBootIDAnnotationKey},
		{karpenter.RebootTerminationGracePeriodAnnotationKey, karpv1.RebootTerminationGracePeriodAnnotationKey},
		{karpenter.RebootingTaintKey, karpv1.RebootingTaintKey},
		{karpenter.ConditionTypeRebooting, karpv1.ConditionTypeRebooting},
		{karpenter.ConditionTypeRebooting, karpv1.RebootReasonRebooting},
		{karpenter.RebootRequestedReason, karpv1.RebootReasonRequested},
		{karpenter.RebootIssuedReason, karpv1.RebootReasonIssued},
		{karpenter.RebootSucceededReason, karpv1.RebootReasonSucceeded},
		{karpenter.RebootFailedReason, karpv1.RebootReasonFailed},
		{karpenter.NVIDIAConsumableCapacityAnnotationKey, awsv1.AnnotationNVIDIAConsumableCapacity},
		{string(karpenter.DisruptionReasonUnhealthy), string(karpv1.DisruptionReasonUnhealthy)},
		{karpenter.EC2NodeClassHashAnnotationKey, awsv1.AnnotationEC2NodeClassHash},
		{karpenter.EC2NodeClassHashVersionAnnotationKey, awsv1.AnnotationEC2NodeClassHashVersion},
		{karpenter.InstanceTaggedAnnotationKey, awsv1.AnnotationInstanceTagged},
		{karpenter.InstanceProfileAnnotationKey, awsv1.AnnotationInstanceProfile},
		{karpenter.ClusterNameTaggedCompatibilityAnnotationKey, awsv1.AnnotationClusterNameTaggedCompatability},
		{karpenter.TerminationFinalizer, karpv1.TerminationFinalizer},
		{karpenter.EC2NodeClassTerminationFinalizer, awsv1.TerminationFinalizer},
		{karpenter.NameTagKey, awsv1.NameTagKey},
		{karpenter.NodePoolTagKey, awsv1.NodePoolTagKey},
		{karpenter.NodeClaimTagKey, awsv1.NodeClaimTagKey},
		{karpenter.NodeClassTagKey, awsv1.NodeClassTagKey},
		{karpenter.EKSClusterNameTagKey, awsv1.EKSClusterNameTagKey},
		{karpenter.Windows2019Build, awsv1.Windows2019Build},
		{karpenter.Windows2022Build, awsv1.Windows2022Build},
		{karpenter.Windows2025Build, awsv1.Windows2025Build},
		{string(karpenter.NodeSelectorOpGte), string(karpv1.NodeSelectorOpGte)},
		{string(karpenter.NodeSelectorOpLte), string(karpv1.NodeSelectorOpLte)},
		{string(karpenter.ConsolidationPolicyBalanced), string(karpv1.ConsolidationPolicyBalanced)},
		{karpenter.ActiveCapacityStrategy, bufferv1beta1.ActiveProvisioningStrategy},
		{karpenter.ConditionTypeReadyForProvisioning, bufferv1beta1.ReadyForProvisioningCondition},
		{karpenter.ConditionTypeProvisioning, bufferv1beta1.ProvisioningCondition},
		{karpenter.BufferGroup, bufferv1beta1.Group},
		{string(karpenter.ResourcePrivateIPv4Address), string(awsv1.ResourcePrivateIPv4Address)},
		{string(karpenter.ResourceEFA), string(awsv1.ResourceEFA)},
		{string(karpenter.ResourceAWSPodENI), string(awsv1.ResourceAWSPodENI)},
	} {
		if c.ours != c.theirs {
			t.Errorf("Joist %q, upstream %q", c.ours, c.theirs)
		}
	}
}

// The reasons of Events are equal. Upstream has no constants for the reasons that are literals
// here.
func TestEventReasonsMatchKarpenter(t *testing.T) {
	pod := &corev1.Pod{}
	for _, c := range []struct{ ours, theirs string }{
		{karpenter.ReasonInsufficientCapacity, events.InsufficientCapacityError},
		{karpenter.ReasonNodeClassNotReady, events.NodeClassNotReady},
		{karpenter.ReasonUnregisteredTaint, events.UnregisteredTaintMissing},
		{karpenter.ReasonFailedConsistencyCheck, events.FailedConsistencyCheck},
		{karpenter.ReasonDisruptionBlocked, events.DisruptionBlocked},
		{karpenter.ReasonUnconsolidatable, events.Unconsolidatable},
		{karpenter.ReasonDisruptionLaunching, events.DisruptionLaunching},
		{karpenter.ReasonDisruptionWaitingReadiness, events.DisruptionWaitingReadiness},
		{karpenter.ReasonDisruptionTerminating, events.DisruptionTerminating},
		{karpenter.ReasonEvicted, events.Evicted},
		{karpenter.ReasonDisrupted, events.Disrupted},
		{karpenter.ReasonFailedDraining, events.FailedDraining},
		{karpenter.ReasonAwaitingVolumeDetachment, terminatorevents.NodeAwaitingVolumeDetachmentEvent(&corev1.Node{}).Reason},
		{karpenter.ReasonGracePeriodExpiring, events.TerminationGracePeriodExpiring},
		{karpenter.ReasonInvalidDoNotDisrupt, podutils.InvalidDoNotDisruptAnnotationEvent(pod, "").Reason},
		{karpenter.ReasonDoNotDisruptUntil, podutils.DoNotDisruptUntilEvent(pod, time.Time{}).Reason},
		{karpenter.ReasonDoNotDisruptElapsed, podutils.DoNotDisruptGracePeriodElapsedEvent(pod).Reason},
		{karpenter.ReasonNodeRepairBlocked, events.NodeRepairBlocked},
		{karpenter.ReasonRebootObserved, events.RebootObserved},
		{karpenter.ReasonRebootFailed, events.RebootFailed},
		{karpenter.ReasonZonalShiftActive, awsevents.NodePoolZonalShiftDetected(&karpv1.NodePool{}, "", "").Reason},
		{karpenter.ReasonZonalShiftCleared, awsevents.NodePoolZonalShiftCleared(&karpv1.NodePool{}, "", "").Reason},
	} {
		if c.ours != c.theirs {
			t.Errorf("Joist %q, upstream %q", c.ours, c.theirs)
		}
	}
}

// The reasons why an EC2NodeClass is not valid are equal.
func TestClassReasonsMatchKarpenter(t *testing.T) {
	for _, c := range []struct{ ours, theirs string }{
		{event.CreateFleetAuthCheckFailed, nodeclass.ConditionReasonCreateFleetAuthFailed},
		{event.CreateLaunchTemplateAuthCheckFailed, nodeclass.ConditionReasonCreateLaunchTemplateAuthFailed},
		{event.RunInstancesAuthCheckFailed, nodeclass.ConditionReasonRunInstancesAuthFailed},
		{event.InstanceProfileNotFound, nodeclass.ConditionReasonInstanceProfileNotFound},
		{event.DependenciesNotReady, nodeclass.ConditionReasonDependenciesNotReady},
		{event.TagValidationFailed, nodeclass.ConditionReasonTagValidationFailed},
		{event.UserDataSizeLimitExceeded, nodeclass.ConditionReasonUserDataTooLarge},
		{event.InvalidKubeletConfiguration, nodeclass.ConditionReasonInvalidKubeletConfiguration},
		{event.KubeletExpressionInvalid, nodeclass.ConditionReasonKubeletExpressionInvalid},
		{event.KubeletExpressionEvaluationFailed, nodeclass.ConditionReasonKubeletExpressionEvalFailed},
		{event.KubeletExpressionsDisabled, nodeclass.ConditionReasonKubeletExpressionsDisabled},
		{event.UnsupportedKubeletConfiguration, nodeclass.ConditionReasonUnsupportedKubeletConfiguration},
		{event.NVIDIAConsumableCapacityInvalid, nodeclass.ConditionReasonConsumableCapacityInvalid},
		{event.DRADisabled, nodeclass.ConditionReasonDRADisabled},
	} {
		if c.ours != c.theirs {
			t.Errorf("Joist %q, upstream %q", c.ours, c.theirs)
		}
	}
}

// The reasons of a CapacityBuffer's conditions, which lifecycle writes, are equal.
func TestBufferReasonsMatchKarpenter(t *testing.T) {
	for _, c := range []struct{ ours, theirs string }{
		{karpenter.BufferResolved, capacitybuffer.ReasonResolved},
		{karpenter.BufferPodTemplateNotFound, capacitybuffer.ReasonPodTemplateNotFound},
		{karpenter.BufferScalableRefNotFound, capacitybuffer.ReasonScalableRefNotFound},
		{karpenter.BufferResolutionFailed, capacitybuffer.ReasonResolutionFailed},
		{karpenter.BufferFitsExistingCapacity, capacitybuffer.ReasonFitsExistingCapacity},
		{karpenter.BufferRequiresNewCapacity, capacitybuffer.ReasonRequiresNewCapacity},
		{karpenter.BufferEmpty, capacitybuffer.ReasonBufferEmpty},
		{karpenter.BufferNotReadyForProvisioning, capacitybuffer.ReasonNotReadyForProvisioning},
	} {
		if c.ours != c.theirs {
			t.Errorf("Joist %q, upstream %q", c.ours, c.theirs)
		}
	}
}

func TestSameTaints(t *testing.T) {
	if diff := cmp.Diff(karpv1.DisruptedNoScheduleTaint, karpenter.DisruptedTaint()); diff != "" {
		t.Errorf("disrupted taint (-upstream +ours):\n%s", diff)
	}
	if diff := cmp.Diff(karpv1.UnregisteredNoExecuteTaint, karpenter.UnregisteredTaint()); diff != "" {
		t.Errorf("unregistered taint (-upstream +ours):\n%s", diff)
	}
	if diff := cmp.Diff(karpv1.RebootingNoScheduleTaint, karpenter.RebootingTaint()); diff != "" {
		t.Errorf("rebooting taint (-upstream +ours):\n%s", diff)
	}
}

func TestSameLabelSets(t *testing.T) {
	if diff := cmp.Diff(sets.List(karpv1.WellKnownLabels), karpenter.WellKnownLabels()); diff != "" {
		t.Errorf("well-known labels (-upstream +ours):\n%s", diff)
	}
	domains := sets.New(karpenter.RestrictedLabelDomains()...)
	if diff := cmp.Diff(sets.List(karpv1.RestrictedLabelDomains), sets.List(domains)); diff != "" {
		t.Errorf("restricted domains (-upstream +ours):\n%s", diff)
	}
	for key, values := range karpv1.WellKnownValuesForRequirements {
		if diff := cmp.Diff(sets.List(values), karpenter.WellKnownLabelValues(key)); diff != "" {
			t.Errorf("values of %s (-upstream +ours):\n%s", key, diff)
		}
	}
	if diff := cmp.Diff(sets.List(awsv1.WellKnownExoticResources), slices.Sorted(slices.Values(karpenter.ExoticResources()))); diff != "" {
		t.Errorf("exotic resources (-upstream +ours):\n%s", diff)
	}
}

// Upstream's AWS operator adds the EBS driver's zone label at its start, outside its API
// package.
func TestSameNormalizedLabels(t *testing.T) {
	ours := karpenter.NormalizedLabels()
	delete(ours, "topology.ebs.csi.aws.com/zone")
	if diff := cmp.Diff(karpv1.NormalizedLabels, ours); diff != "" {
		t.Errorf("normalised labels (-upstream +ours):\n%s", diff)
	}
}

func TestSameRestrictedLabels(t *testing.T) {
	keys := []string{
		"", "team", "example.com/team", "karpenter.sh/anything", "sub.karpenter.sh/anything", "notkarpenter.sh/anything",
		"karpenter.k8s.aws/anything", "sub.karpenter.k8s.aws/x", "kubernetes.io/hostname", "kubernetes.io/anything",
		"k8s.io/anything", "node.kubernetes.io/anything", karpenter.LabelEC2NodeClass, karpenter.NodePoolLabelKey, "karpenter.sh", "/x",
	}
	for _, key := range append(keys, karpenter.WellKnownLabels()...) {
		if ours, theirs := karpenter.IsRestrictedLabel(key), karpv1.IsRestrictedLabel(key) != nil; ours != theirs {
			t.Errorf("label %q: restricted %v, upstream %v", key, ours, theirs)
		}
	}
}

// Upstream sets every condition that Ready depends on to Unknown when it first reconciles
// an object.
func TestSameConditions(t *testing.T) {
	pool, claim, class, overlay := &karpv1.NodePool{}, &karpv1.NodeClaim{}, &awsv1.EC2NodeClass{}, &karpv1alpha1.NodeOverlay{}
	overlay.StatusConditions()
	pool.StatusConditions()
	claim.StatusConditions()
	class.StatusConditions()
	for _, c := range []struct {
		name   string
		ours   []string
		theirs any
	}{
		{"NodePool", karpenter.NodePoolReady(), pool.Status.Conditions},
		{"NodeClaim", karpenter.NodeClaimReady(), claim.Status.Conditions},
		{"EC2NodeClass", karpenter.EC2NodeClassReady(false), class.Status.Conditions},
		{"NodeOverlay", karpenter.NodeOverlayReady(), overlay.Status.Conditions},
	} {
		var theirs karpenter.Conditions
		decode(t, encode(t, c.theirs), &theirs)
		types := sets.New[string]()
		for _, condition := range theirs {
			types.Insert(condition.Type)
		}
		want := sets.New(c.ours...).Insert(karpenter.ConditionTypeReady)
		if diff := cmp.Diff(sets.List(types), sets.List(want)); diff != "" {
			t.Errorf("%s (-upstream +ours):\n%s", c.name, diff)
		}
	}
}
