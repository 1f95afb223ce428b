package podspec_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

const ebs = "ebs.csi.aws.com"

func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func term(requirements ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: requirements}
}

// claim returns a claim bound to the volume "disk", with changes.
func claim(changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}}}
	c.Spec.VolumeName, c.Status.Phase = "disk", corev1.ClaimBound
	for _, change := range changes {
		change(c)
	}
	return c
}

// loose removes the volume from a claim; class is nil if it names none.
func loose(class *string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName, c.Spec.StorageClassName, c.Status.Phase = "", class, corev1.ClaimPending
		c.Annotations = nil
	}
}

func disk(change func(*corev1.PersistentVolumeSpec), terms ...corev1.NodeSelectorTerm) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}}
	if terms != nil {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	change(&v.Spec)
	return v
}

// zoned adds labels, given as keys and values, to a volume.
func zoned(v *corev1.PersistentVolume, labels ...string) *corev1.PersistentVolume {
	v.Labels = map[string]string{"other": "x"}
	for i := 0; i < len(labels); i += 2 {
		v.Labels[labels[i]] = labels[i+1]
	}
	return v
}

func csi(s *corev1.PersistentVolumeSpec) { s.CSI = &corev1.CSIPersistentVolumeSource{Driver: ebs} }
func inTree(s *corev1.PersistentVolumeSpec) {
	s.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{}
}
func local(s *corev1.PersistentVolumeSpec)    { s.Local = &corev1.LocalVolumeSource{} }
func hostPath(s *corev1.PersistentVolumeSpec) { s.HostPath = &corev1.HostPathVolumeSource{} }

func class(name, provisioner string, mode storagev1.VolumeBindingMode, allowed ...corev1.TopologySelectorTerm) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode, AllowedTopologies: allowed,
	}
}

func allowed(key string, values ...string) corev1.TopologySelectorTerm {
	return corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: key, Values: values}}}
}

func standard(c *storagev1.StorageClass, created int64) *storagev1.StorageClass {
	c.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	c.CreationTimestamp = metav1.NewTime(time.Unix(created, 0))
	return c
}

// TestVolumes checks what a claim requires of a node, or why no node could ever mount it.
func TestVolumes(t *testing.T) {
	const zone, wait = corev1.LabelTopologyZone, storagev1.VolumeBindingWaitForFirstConsumer
	hostname := in(corev1.LabelHostname, "node-1")
	for _, tt := range []struct {
		name   string
		claim  *corev1.PersistentVolumeClaim
		volume *corev1.PersistentVolume
		class  *storagev1.StorageClass
		want   planning.Volume
	}{
		{"a bound volume has its volume's node affinity", claim(), disk(csi, term(in(zone, "a"))), nil,
			planning.Volume{Driver: ebs, Alternatives: []corev1.NodeSelectorTerm{term(in(zone, "a"))}}},
		{"terms of the node affinity are alternatives", claim(), disk(csi, term(in(zone, "a")), term(in(zone, "b"))), nil,
			planning.Volume{Driver: ebs, Alternatives: []corev1.NodeSelectorTerm{term(in(zone, "a")), term(in(zone, "b"))}}},
		{"a volume without node affinity", claim(), disk(csi), nil, planning.Volume{Driver: ebs}},
		{"a term without expressions matches nothing", claim(), disk(csi, term(), term(in(zone, "b"))), nil,
			planning.Volume{Driver: ebs, Alternatives: []corev1.NodeSelectorTerm{term(in(zone, "b"))}}},
		{"only terms without expressions match no node", claim(), disk(csi, term()), nil,
			planning.Volume{Problem: "the node affinity of its volume disk matches no node"}},
		{"the hostname of a local volume is ignored", claim(), disk(local, term(hostname, in(zone, "a"))), nil,
			planning.Volume{Alternatives: []corev1.NodeSelectorTerm{term(in(zone, "a"))}}},
		{"the hostname of a hostPath volume is ignored", claim(), disk(hostPath, term(hostname)), nil, planning.Volume{}},
		{"an alternative without conditions matches any node", claim(), disk(local, term(in(zone, "a")), term(hostname)), nil, planning.Volume{}},
		{"the hostname of another volume is kept", claim(), disk(csi, term(hostname)), nil,
			planning.Volume{Driver: ebs, Alternatives: []corev1.NodeSelectorTerm{term(hostname)}}},
		{"an in-tree volume has the CSI driver", claim(), disk(inTree), nil, planning.Volume{Driver: ebs}},

		{"a zone label", claim(), zoned(disk(csi), zone, "a"), nil, planning.Volume{Driver: ebs, Alternatives: []corev1.NodeSelectorTerm{term(in(zone, "a"))}}},
		{"a zone label with several values", claim(), zoned(disk(csi), zone, "b__ a __b"), nil,
			planning.Volume{Driver: ebs, Alternatives: []corev1.NodeSelectorTerm{term(in(zone, "a", "b"))}}},
		{"a zone label with an empty value is ignored", claim(), zoned(disk(csi), zone, "a__"), nil, planning.Volume{Driver: ebs}},
		{"a beta zone label and a region label", claim(), zoned(disk(inTree), corev1.LabelFailureDomainBetaZone, "a", corev1.LabelTopologyRegion, "r"), nil,
			planning.Volume{Driver: ebs, Alternatives: []corev1.NodeSelectorTerm{term(in(zone, "a"), in(corev1.LabelTopologyRegion, "r"))}}},
		{"a zone label restricts each term", claim(), zoned(disk(csi, term(in("x", "1")), term(), term(in("x", "2"))), zone, "a"), nil,
			planning.Volume{Driver: ebs, Alternatives: []corev1.NodeSelectorTerm{term(in("x", "1"), in(zone, "a")), term(in("x", "2"), in(zone, "a"))}}},
		{"a zone label of a local volume", claim(), zoned(disk(local, term(hostname)), zone, "a"), nil,
			planning.Volume{Alternatives: []corev1.NodeSelectorTerm{term(in(zone, "a"))}}},
		{"a zone label does not replace a node affinity that matches no node", claim(), zoned(disk(csi, term()), zone, "a"), nil,
			planning.Volume{Problem: "the node affinity of its volume disk matches no node"}},

		{"an unbound claim allows any zone", claim(loose(new("fast"))), nil, class("fast", ebs, wait), planning.Volume{Driver: ebs}},
		{"an unbound claim has its class's allowedTopologies", claim(loose(new("fast"))), nil, class("fast", ebs, wait, allowed(zone, "a", "b"), allowed(zone, "c")),
			planning.Volume{Driver: ebs, Alternatives: []corev1.NodeSelectorTerm{term(in(zone, "a", "b")), term(in(zone, "c"))}}},
		{"empty allowedTopologies", claim(loose(new("fast"))), nil, class("fast", ebs, wait, corev1.TopologySelectorTerm{}),
			planning.Volume{Problem: "the allowedTopologies of its StorageClass fast match no node"}},
		{"default StorageClass", claim(loose(nil)), nil, standard(class("fast", "kubernetes.io/aws-ebs", wait, allowed(zone, "a")), 1),
			planning.Volume{Driver: ebs, Alternatives: []corev1.NodeSelectorTerm{term(in(zone, "a"))}}},
		{"a class without provisioner", claim(loose(new("local"))), nil, class("local", "kubernetes.io/no-provisioner", wait), planning.Volume{}},
		{"a class in the beta annotation", claim(loose(nil), func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"volume.beta.kubernetes.io/storage-class": "fast"}
		}), nil, class("fast", ebs, wait), planning.Volume{Driver: ebs}},

		{"missing claim", nil, nil, nil, planning.Volume{Problem: "it does not exist"}},
		{"a claim that is being deleted", claim(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = new(metav1.Now()) }), disk(csi), nil,
			planning.Volume{Driver: ebs, Problem: "it is being deleted"}},
		{"an unbound claim that is being deleted", claim(loose(nil), func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = new(metav1.Now()) }), nil, nil,
			planning.Volume{Problem: "it is being deleted"}},
		{"a lost claim", claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }), disk(csi), nil,
			planning.Volume{Problem: "its volume is lost"}},
		{"a binding in progress", claim(func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }), disk(csi), nil,
			planning.Volume{Problem: "its binding to volume disk is not complete"}},
		{"missing volume", claim(), nil, nil, planning.Volume{Problem: "its volume disk does not exist"}},
		{"a class with immediate binding", claim(loose(new("fast"))), nil, class("fast", ebs, storagev1.VolumeBindingImmediate),
			planning.Volume{Problem: "it is not bound yet, and its StorageClass fast has volumeBindingMode Immediate, so its volume is not provisioned for this pod"}},
		{"missing class", claim(loose(new("slow"))), nil, class("fast", ebs, wait), planning.Volume{Problem: "its StorageClass slow does not exist"}},
		{"no class", claim(loose(nil)), nil, class("fast", ebs, wait),
			planning.Volume{Problem: "it is not bound, and has no StorageClass to provision a volume"}},
		{"empty class name", claim(loose(new(""))), nil, standard(class("fast", ebs, wait), 1),
			planning.Volume{Problem: "it is not bound, and has no StorageClass to provision a volume"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Claim = "data"
			if diff := cmp.Diff([]planning.Volume{tt.want}, podspec.Volumes(user(), storage(tt.claim, tt.volume, tt.class))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// user returns a pod that uses the claim twice, and has volumes that require nothing.
func user() *corev1.Pod {
	source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "data", VolumeSource: source}, {Name: "again", VolumeSource: source},
	}}}
}

func storage(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, class *storagev1.StorageClass) *podspec.Storage {
	var claims []*corev1.PersistentVolumeClaim
	var volumes []*corev1.PersistentVolume
	var classes []*storagev1.StorageClass
	if claim != nil {
		other := claim.DeepCopy()
		other.Namespace = "elsewhere"
		claims = append(claims, claim, other)
	}
	if volume != nil {
		volumes = append(volumes, volume)
	}
	if class != nil {
		classes = append(classes, class)
	}
	return podspec.NewStorage(claims, volumes, classes)
}

func TestEphemeralVolumesNeedNoClaimYet(t *testing.T) {
	pod := user()
	pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("fast")}},
	}}}}
	classes := []*storagev1.StorageClass{class("fast", ebs, storagev1.VolumeBindingWaitForFirstConsumer)}
	want := []planning.Volume{{Claim: "p-scratch", Driver: ebs}}
	if diff := cmp.Diff(want, podspec.Volumes(pod, podspec.NewStorage(nil, nil, classes))); diff != "" {
		t.Error(diff)
	}
	// An existing claim counts instead of the template.
	made := claim()
	made.Name = "p-scratch"
	want[0].Alternatives = []corev1.NodeSelectorTerm{term(in("z", "a"))}
	got := podspec.Volumes(pod, podspec.NewStorage([]*corev1.PersistentVolumeClaim{made}, []*corev1.PersistentVolume{disk(csi, term(in("z", "a")))}, classes))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	pod.Spec.Volumes[0].Ephemeral.VolumeClaimTemplate = nil
	if got := podspec.Volumes(pod, podspec.NewStorage(nil, nil, nil)); len(got) != 1 || got[0].Problem == "" {
		t.Errorf("volume without claim and template: %+v", got)
	}
}

func TestNewestDefaultStorageClassIsUsed(t *testing.T) {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	classes := []*storagev1.StorageClass{
		standard(class("b", "b.example.com", wait), 2), standard(class("old", "old.example.com", wait), 1), standard(class("a", "a.example.com", wait), 2),
	}
	got := podspec.Volumes(user(), podspec.NewStorage([]*corev1.PersistentVolumeClaim{claim(loose(nil))}, nil, classes))
	if len(got) != 1 || got[0].Driver != "a.example.com" {
		t.Errorf("volumes: %+v", got)
	}
}

func TestAttachLimits(t *testing.T) {
	node := &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: ebs, Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(25))}}, {Name: "efs.csi.aws.com"},
		{Name: "open.example.com", Allocatable: &storagev1.VolumeNodeResources{}},
	}}}
	got := podspec.AttachLimits(node)
	if limit := got[planning.AttachLimitResource(ebs)]; len(got) != 1 || limit.Value() != 25 {
		t.Errorf("limits: %v", got)
	}
}
