package collect_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning"
)

var attachLimit = planning.AttachLimitResource(catalog.EBSDriver)

func storageClass() *storagev1.StorageClass {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "gp3"}, Provisioner: catalog.EBSDriver, VolumeBindingMode: &wait}
}

func volumeClaim(name string) *corev1.PersistentVolumeClaim {
	class := "gp3"
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class},
	}
}

// deletedClaim returns a claim that is bound to volume "v" + name and stays because a pod uses it.
func deletedClaim(name string) *corev1.PersistentVolumeClaim {
	c := boundClaim(name, "v"+name)
	c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: noon}, []string{"kubernetes.io/pvc-protection"}
	return c
}

func boundClaim(name, volume string) *corev1.PersistentVolumeClaim {
	c := volumeClaim(name)
	c.Spec.VolumeName, c.Annotations = volume, map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	return c
}

// volume returns a volume bound to the claim.
func volume(name, claim string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: catalog.EBSDriver}
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: claim}
	return v
}

func attachment(name, volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: catalog.EBSDriver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
	}}
}

func csiNode(count int32) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: catalog.EBSDriver, NodeID: "i-1", Allocatable: &storagev1.VolumeNodeResources{Count: &count}},
	}}}
}

func claims(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, name := range names {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			}})
		}
	}
}

// Pods that each have their own claim, as in StatefulSets, are still one class; pods that share a
// claim name it.
func TestVolumesOfPendingPods(t *testing.T) {
	view := collectAll(storageClass(), volumeClaim("a"), volumeClaim("b"), volumeClaim("shared"),
		pod("a", "", claims("a")), pod("b", "", claims("b")), pod("c", "", claims("shared")), pod("d", "", claims("shared")), pod("e", "", claims("lost")))
	got := map[string][]planning.Volume{}
	for _, class := range view.Pending {
		for _, ref := range class.Pods {
			got[ref.Name] = class.Spec.Volumes
		}
	}
	own, shared := []planning.Volume{{Driver: catalog.EBSDriver}}, []planning.Volume{{Claim: "shared", Driver: catalog.EBSDriver}}
	want := map[string][]planning.Volume{
		"a": own, "b": own, "c": shared, "d": shared, "e": {{Claim: "lost", Problem: "it does not exist"}},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(view.Pending) != 3 {
		t.Errorf("%d classes\n%s", len(view.Pending), diff)
	}
}

func TestAttachLimits(t *testing.T) {
	for _, tt := range []struct {
		name        string
		objects     []cluster.Object
		limit, used int64
	}{
		{"no CSINode", nil, 0, 0},
		{"no volumes used", []cluster.Object{csiNode(24)}, 24, 0},
		{"one claim per pod", []cluster.Object{csiNode(24), pod("a", "n", claims("a")), pod("b", "n", claims("b"))}, 24, 2},
		{"one claim of two pods", []cluster.Object{csiNode(24), pod("a", "n", claims("a")), pod("b", "n", claims("a"))}, 24, 1},
		{"a DaemonSet pod with a volume", []cluster.Object{csiNode(24), pod("a", "n", claims("a"), owner("DaemonSet"))}, 24, 1},
		{"an ended pod", []cluster.Object{csiNode(24), pod("a", "n", claims("a"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, 24, 0},
		{"attached and used", []cluster.Object{csiNode(24), pod("a", "n", claims("a")), volume("va", "a"), attachment("x", "va", "n")}, 24, 1},
		{"attached without a pod", []cluster.Object{csiNode(24), volume("va", "a"), attachment("x", "va", "n")}, 24, 1},
		{"attached, its PersistentVolume is deleted", []cluster.Object{csiNode(24), attachment("x", "va", "n")}, 24, 1},
		{"the claim is being deleted", []cluster.Object{csiNode(24), pod("a", "n", claims("going")), volume("vgoing", "going"), deletedClaim("going")}, 24, 1},
		{"the claim is being deleted, attached", []cluster.Object{
			csiNode(24), pod("a", "n", claims("going")), volume("vgoing", "going"), attachment("x", "vgoing", "n"), deletedClaim("going")}, 24, 1},
		{"the claim does not exist any more, attached", []cluster.Object{csiNode(24), pod("a", "n", claims("gone")), volume("vgone", "gone"), attachment("x", "vgone", "n")}, 24, 1},
		{"attached to another node", []cluster.Object{csiNode(24), volume("va", "a"), attachment("x", "va", "m")}, 24, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := onNode(t, append(tt.objects, storageClass(), volumeClaim("a"), volumeClaim("b"))...)
			limit, used := got.Allocatable[attachLimit], got.Used[attachLimit]
			if limit.Value() != tt.limit || used.Value() != tt.used || got.Allocatable.Cpu().Value() != 4 {
				t.Errorf("got %s of %s volumes, want %d of %d; %s CPUs", used.String(), limit.String(), tt.used, tt.limit, got.Allocatable.Cpu())
			}
		})
	}
}

// A pod may wait only for a volume claim to be created.
func TestVolumesChangeSupplyKey(t *testing.T) {
	before := collectAll(storageClass(), pod("a", "", claims("a"))).SupplyKey()
	after := collectAll(storageClass(), pod("a", "", claims("a")), volumeClaim("a")).SupplyKey()
	if before == after {
		t.Error("a new volume claim does not change the supply key")
	}
}

// A pod waits while another bound pod uses its ReadWriteOncePod claim, also if that one terminates. The
// pod that uses the claim is planned like others when its node is removed.
func TestClaimsForOnePod(t *testing.T) {
	one := func(name string) *corev1.PersistentVolumeClaim {
		c := boundClaim(name, "v"+name)
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
		return c
	}
	terminating := func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: noon}, new(int64(60))
	}
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	const problem = "pod old uses it, and its access mode ReadWriteOncePod allows one pod at a time"
	for _, tt := range []struct {
		name    string
		objects []cluster.Object
		want    map[string]string // The problem by pending pod.
	}{
		{"a running pod uses it", []cluster.Object{node("n"), one("a"), pod("old", "n", claims("a")), pod("new", "", claims("a"))}, map[string]string{"new": problem}},
		{"a terminating pod uses it", []cluster.Object{node("n"), one("a"), pod("old", "n", claims("a"), terminating), pod("new", "", claims("a"))}, map[string]string{"new": problem}},
		{"an ended pod used it", []cluster.Object{node("n"), one("a"), pod("old", "n", claims("a"), ended), pod("new", "", claims("a"))}, map[string]string{"new": ""}},
		{"a pending pod uses it", []cluster.Object{one("a"), pod("old", "", claims("a")), pod("new", "", claims("a"))}, map[string]string{"old": "", "new": ""}},
		{"a running pod uses another claim", []cluster.Object{node("n"), one("a"), one("b"), pod("old", "n", claims("b")), pod("new", "", claims("a"))}, map[string]string{"new": ""}},
		{"a running pod of another namespace", []cluster.Object{node("n"), one("a"), pod("old", "n", claims("a"), func(p *corev1.Pod) { p.Namespace = "other" }), pod("new", "", claims("a"))},
			map[string]string{"new": ""}},
		{"another access mode", []cluster.Object{node("n"), boundClaim("a", "va"), pod("old", "n", claims("a")), pod("new", "", claims("a"))}, map[string]string{"new": ""}},
		{"its node is removed", []cluster.Object{node("n", disrupted), one("a"), pod("old", "n", claims("a"), owner("ReplicaSet"))}, map[string]string{"old": ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			view := collectAll(append(tt.objects, volume("va", "a"), volume("vb", "b"))...)
			got := map[string]string{}
			for _, class := range view.Pending {
				for _, ref := range class.Pods {
					got[ref.Name] = class.Spec.Volumes[0].Problem
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A pod that waited for a ReadWriteOncePod claim is planned as soon as the pod that used the claim is gone.
func TestReleasedClaimIsPlanned(t *testing.T) {
	feed, data := newFakeFeed(), boundClaim("a", "va")
	data.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	old := pod("old", "n", claims("a"))
	for _, o := range []cluster.Object{node("n"), data, volume("va", "a"), csiNode(24), old, pod("new", "", claims("a"))} {
		feed.put(o)
	}
	state, given := collect.NewState(feed), collect.Inputs{Now: noon}
	before := state.View(given)
	if used := before.Snapshot.Nodes[0].Used[attachLimit]; before.Pending[0].Spec.Volumes[0].Problem == "" || used.Value() != 1 {
		t.Errorf("while the claim is in use: %+v, %s volumes", before.Pending[0].Spec.Volumes, used.String())
	}
	feed.drop(cluster.Pods, cluster.KeyOf(old))
	given.Now = noon.Add(time.Millisecond)
	after := state.View(given)
	if used := after.Snapshot.Nodes[0].Used[attachLimit]; after.Pending[0].Spec.Volumes[0].Problem != "" || used.Value() != 0 {
		t.Errorf("after the claim was released: %+v, %s volumes", after.Pending[0].Spec.Volumes, used.String())
	}
	if before.SupplyKey() == after.SupplyKey() {
		t.Error("the release of the claim does not change the supply key, so the pod is not planned at once")
	}
}
