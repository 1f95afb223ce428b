package clustertest

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func createSetsIdentity(s *suite) {
	object := s.configMap("a")
	object.UID = "mine"
	made := create(s, object)
	if made.UID == "" || made.UID == "mine" || made.ResourceVersion == "" || made.CreationTimestamp.IsZero() {
		s.Errorf("created object: UID %q, version %q, time %s, want all set", made.UID, made.ResourceVersion, made.CreationTimestamp)
	}
	read := get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a"))
	if read.UID != made.UID || read.ResourceVersion != made.ResourceVersion || read.Data["a"] != "1" {
		s.Errorf("Get after Create = %+v", read)
	}
	_, err := s.Client.Get(s.ctx(), cluster.ConfigMaps, s.key("b"))
	s.wantKind(err, fault.Missing, "get of a missing object")
}

func takenNames(s *suite) {
	create(s, s.configMap("a"))
	_, err := s.Client.Create(s.ctx(), s.configMap("a"))
	s.wantKind(err, fault.Conflict, "create with an existing name")
}

func badNames(s *suite) {
	nameless := s.configMap("")
	_, err := s.Client.Create(s.ctx(), nameless)
	s.wantKind(err, fault.Invalid, "create without a name")
	nameless.GenerateName = "a-"
	_, err = s.Client.Create(s.ctx(), nameless)
	s.wantKind(err, fault.Invalid, "create with generateName")
	homeless := s.configMap("a")
	homeless.Namespace = ""
	_, err = s.Client.Create(s.ctx(), homeless)
	s.wantKind(err, fault.Invalid, "create without a namespace")
	versioned := s.configMap("a")
	versioned.ResourceVersion = "1"
	_, err = s.Client.Create(s.ctx(), versioned)
	s.wantKind(err, fault.Invalid, "create with a resourceVersion")
}

// namelessCalls checks that no call without a name reaches a collection, or looks like one about a missing object.
func namelessCalls(s *suite) {
	stored := create(s, s.configMap("a"))
	nameless := stored.DeepCopy()
	nameless.Name = ""
	key := cluster.Key{Namespace: s.Namespace}
	_, err := s.Client.Get(s.ctx(), cluster.ConfigMaps, key)
	s.wantKind(err, fault.Invalid, "get without a name")
	_, err = s.Client.Update(s.ctx(), nameless)
	s.wantKind(err, fault.Invalid, "update without a name")
	value := "x"
	s.wantKind(s.Client.PatchAnnotation(s.ctx(), nameless, "a", &value), fault.Invalid, "patch without a name")
	s.wantKind(s.Client.Delete(s.ctx(), cluster.ConfigMaps, key, ""), fault.Invalid, "delete without a name")
	s.wantKind(s.Client.DeleteAsRead(s.ctx(), cluster.ConfigMaps, nameless), fault.Invalid, "delete as read without a name")
	s.wantKind(s.Client.DeletePod(s.ctx(), key, "", 0), fault.Invalid, "delete of a pod without a name")
	s.wantKind(s.Client.Evict(s.ctx(), key, ""), fault.Invalid, "eviction without a name")
	get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a"))
}

func absentNamespace(s *suite) {
	object := s.configMap("a")
	object.Namespace += "-absent"
	_, err := s.Client.Create(s.ctx(), object)
	s.wantKind(err, fault.Missing, "create in a missing namespace")
}

func updateConflict(s *suite) {
	first := create(s, s.configMap("a"))
	second := first.DeepCopy()
	first.Data["a"] = "2"
	stored := update(s, first)
	if stored.ResourceVersion == second.ResourceVersion {
		s.Error("an update did not change the version")
	}
	second.Data["a"] = "3"
	_, err := s.Client.Update(s.ctx(), second)
	s.wantKind(err, fault.Conflict, "update of an old version")
	if got := get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a")); got.Data["a"] != "2" {
		s.Errorf("data after a rejected update = %q", got.Data["a"])
	}
	stored.ResourceVersion = ""
	_, err = s.Client.Update(s.ctx(), stored)
	s.wantKind(err, fault.Invalid, "update without a resourceVersion")
	absent := s.configMap("absent")
	absent.ResourceVersion = "1"
	_, err = s.Client.Update(s.ctx(), absent)
	s.wantKind(err, fault.Missing, "update of a missing object")
	// Users write this kind, so an adapter may read the stored object before the update.
	pool := &karpenter.NodePool{ObjectMeta: s.global("absent"), Spec: karpenter.NodePoolSpec{Template: s.claimTemplate()}}
	pool.ResourceVersion = "1"
	_, err = s.Client.Update(s.ctx(), pool)
	s.wantKind(err, fault.Missing, "update of a missing NodePool")
}

func updateUnchanged(s *suite) {
	made := create(s, s.configMap("a"))
	if again := update(s, made.DeepCopy()); again.ResourceVersion != made.ResourceVersion {
		s.Errorf("an update without a change changed the version from %s to %s", made.ResourceVersion, again.ResourceVersion)
	}
}

func updateSuccessor(s *suite) {
	old := create(s, s.configMap("a"))
	if err := s.Client.Delete(s.ctx(), cluster.ConfigMaps, s.key("a"), ""); err != nil {
		s.Fatal(err)
	}
	s.waitForDeletion(cluster.ConfigMaps, s.key("a"))
	next := create(s, s.configMap("a"))
	if next.UID == old.UID {
		s.Fatal("the recreated object has the same UID")
	}
	old.Data["a"] = "2"
	_, err := s.Client.Update(s.ctx(), old)
	s.wantKind(err, fault.Conflict, "update of a recreated object")
	err = s.Client.Delete(s.ctx(), cluster.ConfigMaps, s.key("a"), old.UID)
	s.wantKind(err, fault.Conflict, "delete of a recreated object")
}

func ownFields(s *suite) {
	made := create(s, s.configMap("a"))
	change := made.DeepCopy()
	change.CreationTimestamp = metav1.Time{}
	change.Data["a"] = "2"
	stored := update(s, change)
	if stored.UID != made.UID || !stored.CreationTimestamp.Equal(&made.CreationTimestamp) || stored.Data["a"] != "2" {
		s.Errorf("object after the update: %+v", stored)
	}
}

func finalizers(s *suite) {
	object := s.configMap("a")
	object.Finalizers = []string{"joist.example/test"}
	made := create(s, object)
	s.Cleanup(func() {
		// No object may remain after a failure.
		if left, err := s.Client.Get(context.Background(), cluster.ConfigMaps, s.key("a")); err == nil {
			left.SetFinalizers(nil)
			_, _ = s.Client.Update(context.Background(), left)
		}
	})
	for range 2 {
		if err := s.Client.Delete(s.ctx(), cluster.ConfigMaps, s.key("a"), made.UID); err != nil {
			s.Fatal(err)
		}
	}
	dying := get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a"))
	if dying.DeletionTimestamp == nil || dying.UID != made.UID {
		s.Fatalf("metadata of the deleted object: %+v", dying.ObjectMeta)
	}
	more := dying.DeepCopy()
	more.Finalizers = append(more.Finalizers, "joist.example/late")
	_, err := s.Client.Update(s.ctx(), more)
	s.wantKind(err, fault.Invalid, "adding a finalizer to an object that is being deleted")
	dying.Data["a"] = "2"
	dying = update(s, dying)
	dying.Finalizers = nil
	update(s, dying)
	_, err = s.Client.Get(s.ctx(), cluster.ConfigMaps, s.key("a"))
	s.wantKind(err, fault.Missing, "get after the last finalizer was removed")
	create(s, s.configMap("a"))
}

func deleteUID(s *suite) {
	made := create(s, s.configMap("a"))
	err := s.Client.Delete(s.ctx(), cluster.ConfigMaps, s.key("a"), "00000000-0000-0000-0000-000000000000")
	s.wantKind(err, fault.Conflict, "delete with another UID")
	get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a"))
	if err := s.Client.Delete(s.ctx(), cluster.ConfigMaps, s.key("a"), made.UID); err != nil {
		s.Fatal(err)
	}
	err = s.Client.Delete(s.ctx(), cluster.ConfigMaps, s.key("a"), made.UID)
	s.wantKind(err, fault.Missing, "delete of a deleted object")
}

func deleteAsRead(s *suite) {
	old := create(s, s.configMap("a"))
	change := old.DeepCopy()
	change.Data["a"] = "2"
	now := update(s, change)
	err := s.Client.DeleteAsRead(s.ctx(), cluster.ConfigMaps, old)
	s.wantKind(err, fault.Conflict, "DeleteAsRead of a changed object")
	get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a"))
	if err := s.Client.DeleteAsRead(s.ctx(), cluster.ConfigMaps, now); err != nil {
		s.Fatal(err)
	}
	err = s.Client.DeleteAsRead(s.ctx(), cluster.ConfigMaps, now)
	s.wantKind(err, fault.Missing, "delete of a deleted object")
	create(s, s.configMap("a"))
	err = s.Client.DeleteAsRead(s.ctx(), cluster.ConfigMaps, now)
	s.wantKind(err, fault.Conflict, "DeleteAsRead of a recreated object")
	for _, name := range []string{"a", "absent"} {
		versioned, known := s.configMap(name), s.configMap(name)
		versioned.ResourceVersion, known.UID = now.ResourceVersion, now.UID
		for _, unread := range []*corev1.ConfigMap{s.configMap(name), versioned, known} {
			err = s.Client.DeleteAsRead(s.ctx(), cluster.ConfigMaps, unread)
			s.wantKind(err, fault.Invalid, "DeleteAsRead of an object without UID")
		}
	}
	get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a"))
}

func noStatus(s *suite) {
	made := create(s, s.configMap("a"))
	_, err := s.Client.UpdateStatus(s.ctx(), made)
	s.wantKind(err, fault.Missing, "status update of a kind without status")
}

func cancelled(s *suite) {
	ctx, cancel := context.WithCancel(s.ctx())
	cancel()
	if _, err := s.Client.Create(ctx, s.configMap("a")); !errors.Is(err, context.Canceled) {
		s.Errorf("the error is %v, want one that wraps context.Canceled", err)
	}
	_, err := s.Client.Get(s.ctx(), cluster.ConfigMaps, s.key("a"))
	s.wantKind(err, fault.Missing, "get of an object whose creation was cancelled")
}

func events(s *suite) {
	made := create(s, s.configMap("a"))
	event := cluster.Event{About: made, Kind: cluster.ConfigMaps, Type: corev1.EventTypeNormal, Reason: "Tested", Message: "It was tested.", Now: made.CreationTimestamp.Time}
	keyed := event
	keyed.Key = "one"
	for _, e := range []cluster.Event{event, event, keyed, keyed} {
		if err := s.Client.Report(s.ctx(), e); err != nil {
			s.Fatal(err)
		}
	}
}

func patchAnnotation(s *suite) {
	object := s.configMap("a")
	object.Annotations = map[string]string{"kept": "1", "gone": "2"}
	made := create(s, object)
	bare := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: made.Namespace, Name: made.Name, UID: made.UID, ResourceVersion: made.ResourceVersion}}
	if err := s.Client.PatchAnnotation(s.ctx(), bare, "gone", nil); err != nil {
		s.Fatal(err)
	}
	s.wantKind(s.Client.PatchAnnotation(s.ctx(), bare, "new", new("3")), fault.Conflict, "patch of an old version")
	read := get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a"))
	if len(read.Annotations) != 1 || read.Annotations["kept"] != "1" || read.Data["a"] != "1" || read.ResourceVersion == made.ResourceVersion {
		s.Errorf("after a patch that removes an annotation the object is %+v", read)
	}
	if err := s.Client.PatchAnnotation(s.ctx(), read, "new", new("3")); err != nil {
		s.Fatal(err)
	}
	changed := get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a"))
	if len(changed.Annotations) != 2 || changed.Annotations["new"] != "3" {
		s.Errorf("after a patch that adds an annotation the object has %v", changed.Annotations)
	}
	s.wantKind(s.Client.PatchAnnotation(s.ctx(), s.configMap("a"), "new", nil), fault.Invalid, "patch of an object that was not read")
	if err := s.Client.Delete(s.ctx(), cluster.ConfigMaps, s.key("a"), ""); err != nil {
		s.Fatal(err)
	}
	s.wantKind(s.Client.PatchAnnotation(s.ctx(), changed, "new", nil), fault.Missing, "patch of a missing object")
	create(s, s.configMap("a"))
	s.wantKind(s.Client.PatchAnnotation(s.ctx(), changed, "new", nil), fault.Conflict, "patch of a recreated object")
}
