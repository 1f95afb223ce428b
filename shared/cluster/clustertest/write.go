package clustertest

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

func identity(s *suite) {
	object := s.configMap("a")
	object.UID = "mine"
	made := create(s, object)
	if made.UID == "" || made.UID == "mine" || made.ResourceVersion == "" || made.CreationTimestamp.IsZero() {
		s.Errorf("the server gave UID %q, version %q and time %s", made.UID, made.ResourceVersion, made.CreationTimestamp)
	}
	read := get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a"))
	if read.UID != made.UID || read.ResourceVersion != made.ResourceVersion || read.Data["a"] != "1" {
		s.Errorf("what was created reads as %+v", read)
	}
	_, err := s.Client.Get(s.ctx(), cluster.ConfigMaps, s.key("b"))
	s.fails(err, fault.Missing, "reading what is not there")
}

func takenNames(s *suite) {
	create(s, s.configMap("a"))
	_, err := s.Client.Create(s.ctx(), s.configMap("a"))
	s.fails(err, fault.Conflict, "creating a name that is taken")
}

func badNames(s *suite) {
	nameless := s.configMap("")
	_, err := s.Client.Create(s.ctx(), nameless)
	s.fails(err, fault.Invalid, "creating something without a name")
	nameless.GenerateName = "a-"
	_, err = s.Client.Create(s.ctx(), nameless)
	s.fails(err, fault.Invalid, "letting the server choose a name")
	homeless := s.configMap("a")
	homeless.Namespace = ""
	_, err = s.Client.Create(s.ctx(), homeless)
	s.fails(err, fault.Invalid, "creating something in no namespace")
	versioned := s.configMap("a")
	versioned.ResourceVersion = "1"
	_, err = s.Client.Create(s.ctx(), versioned)
	s.fails(err, fault.Invalid, "creating something with a version")
}

func absentNamespace(s *suite) {
	object := s.configMap("a")
	object.Namespace += "-absent"
	_, err := s.Client.Create(s.ctx(), object)
	s.fails(err, fault.Missing, "creating something in a namespace that does not exist")
}

func swap(s *suite) {
	first := create(s, s.configMap("a"))
	second := first.DeepCopy()
	first.Data["a"] = "2"
	stored := update(s, first)
	if stored.ResourceVersion == second.ResourceVersion {
		s.Error("a change kept its version")
	}
	second.Data["a"] = "3"
	_, err := s.Client.Update(s.ctx(), second)
	s.fails(err, fault.Conflict, "a swap of an old version")
	if got := get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a")); got.Data["a"] != "2" {
		s.Errorf("the lost swap left %q", got.Data["a"])
	}
	stored.ResourceVersion = ""
	_, err = s.Client.Update(s.ctx(), stored)
	s.fails(err, fault.Invalid, "a swap without a version")
	absent := s.configMap("absent")
	absent.ResourceVersion = "1"
	_, err = s.Client.Update(s.ctx(), absent)
	s.fails(err, fault.Missing, "a swap of what is not there")
}

func idle(s *suite) {
	made := create(s, s.configMap("a"))
	if again := update(s, made.DeepCopy()); again.ResourceVersion != made.ResourceVersion {
		s.Errorf("the version went from %s to %s although nothing changed", made.ResourceVersion, again.ResourceVersion)
	}
}

func successor(s *suite) {
	old := create(s, s.configMap("a"))
	if err := s.Client.Delete(s.ctx(), cluster.ConfigMaps, s.key("a"), ""); err != nil {
		s.Fatal(err)
	}
	s.gone(cluster.ConfigMaps, s.key("a"))
	next := create(s, s.configMap("a"))
	if next.UID == old.UID {
		s.Fatal("another object has the same UID")
	}
	old.Data["a"] = "2"
	_, err := s.Client.Update(s.ctx(), old)
	s.fails(err, fault.Conflict, "updating an object under whose name another one stands")
	err = s.Client.Delete(s.ctx(), cluster.ConfigMaps, s.key("a"), old.UID)
	s.fails(err, fault.Conflict, "deleting it")
}

func ownFields(s *suite) {
	made := create(s, s.configMap("a"))
	change := made.DeepCopy()
	change.CreationTimestamp = metav1.Time{}
	change.Data["a"] = "2"
	stored := update(s, change)
	if stored.UID != made.UID || !stored.CreationTimestamp.Equal(&made.CreationTimestamp) || stored.Data["a"] != "2" {
		s.Errorf("the object became %+v", stored)
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
		s.Fatalf("the object that was deleted reads as %+v", dying.ObjectMeta)
	}
	more := dying.DeepCopy()
	more.Finalizers = append(more.Finalizers, "joist.example/late")
	_, err := s.Client.Update(s.ctx(), more)
	s.fails(err, fault.Invalid, "adding a finalizer to what is being deleted")
	dying.Data["a"] = "2"
	dying = update(s, dying)
	dying.Finalizers = nil
	update(s, dying)
	_, err = s.Client.Get(s.ctx(), cluster.ConfigMaps, s.key("a"))
	s.fails(err, fault.Missing, "reading what its last finalizer let go")
	create(s, s.configMap("a"))
}

func deleteUID(s *suite) {
	made := create(s, s.configMap("a"))
	err := s.Client.Delete(s.ctx(), cluster.ConfigMaps, s.key("a"), "00000000-0000-0000-0000-000000000000")
	s.fails(err, fault.Conflict, "deleting another UID")
	get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a"))
	if err := s.Client.Delete(s.ctx(), cluster.ConfigMaps, s.key("a"), made.UID); err != nil {
		s.Fatal(err)
	}
	err = s.Client.Delete(s.ctx(), cluster.ConfigMaps, s.key("a"), made.UID)
	s.fails(err, fault.Missing, "deleting what is gone")
}

func deleteAsRead(s *suite) {
	old := create(s, s.configMap("a"))
	change := old.DeepCopy()
	change.Data["a"] = "2"
	now := update(s, change)
	err := s.Client.DeleteAsRead(s.ctx(), cluster.ConfigMaps, old)
	s.fails(err, fault.Conflict, "deleting what has changed since")
	get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a"))
	if err := s.Client.DeleteAsRead(s.ctx(), cluster.ConfigMaps, now); err != nil {
		s.Fatal(err)
	}
	err = s.Client.DeleteAsRead(s.ctx(), cluster.ConfigMaps, now)
	s.fails(err, fault.Missing, "deleting what is gone")
	create(s, s.configMap("a"))
	err = s.Client.DeleteAsRead(s.ctx(), cluster.ConfigMaps, now)
	s.fails(err, fault.Conflict, "deleting what stands under its name now")
	for _, name := range []string{"a", "absent"} {
		versioned, known := s.configMap(name), s.configMap(name)
		versioned.ResourceVersion, known.UID = now.ResourceVersion, now.UID
		for _, unread := range []*corev1.ConfigMap{s.configMap(name), versioned, known} {
			err = s.Client.DeleteAsRead(s.ctx(), cluster.ConfigMaps, unread)
			s.fails(err, fault.Invalid, "deleting what was not read")
		}
	}
	get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a"))
}

func noStatus(s *suite) {
	made := create(s, s.configMap("a"))
	_, err := s.Client.UpdateStatus(s.ctx(), made)
	s.fails(err, fault.Missing, "updating a status that the kind does not have")
}

func cancelled(s *suite) {
	ctx, cancel := context.WithCancel(s.ctx())
	cancel()
	if _, err := s.Client.Create(ctx, s.configMap("a")); !errors.Is(err, context.Canceled) {
		s.Errorf("the error is %v, want one that wraps context.Canceled", err)
	}
	_, err := s.Client.Get(s.ctx(), cluster.ConfigMaps, s.key("a"))
	s.fails(err, fault.Missing, "reading what was never created")
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
