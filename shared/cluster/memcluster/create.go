package memcluster

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// createObject stores a new object. The server sets its UID, timestamps and generation, and
// drops the status that was sent.
func (s *Server) createObject(what call, object cluster.Object) (cluster.Object, error) {
	if err := s.admitObject(what, object); err != nil {
		return nil, err
	}
	if _, taken := s.objects[what.kind][what.key]; taken {
		return nil, what.newError(fault.Conflict, "an object of this name exists")
	}
	if object.GetResourceVersion() != "" {
		return nil, what.newError(fault.Invalid, "resourceVersion is set on an object to be created")
	}
	if err := validateNew(what, object); err != nil {
		return nil, err
	}
	object.SetUID(s.nextUID())
	object.SetCreationTimestamp(s.apiTime())
	object.SetDeletionTimestamp(nil)
	object.SetDeletionGracePeriodSeconds(nil)
	object.SetGeneration(0)
	if hasGeneration(what.kind) {
		object.SetGeneration(1)
	}
	// Only Nodes keep the status of the request, because a kubelet registers with one.
	if what.kind.Status && what.kind != cluster.Nodes {
		clearField(object, "Status")
	}
	if err := s.fillDefaults(what, object); err != nil {
		return nil, err
	}
	return s.storeObject(what.kind, object), nil
}

// admitObject checks the fields that every object needs.
func (s *Server) admitObject(what call, object cluster.Object) error {
	switch {
	case object.GetGenerateName() != "" && object.GetName() == "":
		return what.newError(fault.Invalid, "generateName is not supported").WithHint("set the name")
	case object.GetName() == "":
		return what.newError(fault.Invalid, "the object has no name")
	case what.kind.Namespaced && object.GetNamespace() == "":
		return what.newError(fault.Invalid, "the object has no namespace")
	case !what.kind.Namespaced && object.GetNamespace() != "":
		return what.newError(fault.Invalid, "the kind is cluster-scoped, but the object has a namespace")
	case what.kind.Namespaced && s.objects[cluster.Namespaces][cluster.Key{Name: object.GetNamespace()}] == nil:
		return what.newError(fault.Missing, "namespace %s does not exist", object.GetNamespace())
	}
	return nil
}

// fillDefaults sets the API server's defaults.
func (s *Server) fillDefaults(what call, object cluster.Object) error {
	switch object := object.(type) {
	case *corev1.Pod:
		return s.fillPod(what, object)
	case *corev1.Namespace:
		if object.Labels == nil {
			object.Labels = map[string]string{}
		}
		object.Labels[corev1.LabelMetadataName] = object.Name
		object.Status.Phase = corev1.NamespaceActive
	case *corev1.PersistentVolumeClaim:
		if object.Status.Phase == "" {
			object.Status.Phase = corev1.ClaimPending
		}
	}
	return nil
}

// SeedObjects stores objects with their status, UID and timestamps. Empty fields are filled as by
// Create. Metadata and requirements are not validated, because an older server may have
// accepted them. It panics on an object that cannot exist.
func (s *Server) SeedObjects(objects ...cluster.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range objects {
		if err := s.seedObject(copyObject(object)); err != nil {
			panic(err)
		}
	}
}

func (s *Server) seedObject(object cluster.Object) error {
	kind, ok := cluster.KindOf(object)
	if !ok {
		return fault.F("seeding", fault.Bug, "the type %T is not in cluster.Kinds", object)
	}
	what := call{verbSeed, kind, cluster.KeyOf(object)}
	s.acting = caller{"", verbSeed}
	defer func() { s.acting = caller{} }()
	home := cluster.Key{Name: object.GetNamespace()}
	if kind.Namespaced && home.Name != "" && s.objects[cluster.Namespaces][home] == nil {
		namespace := &corev1.Namespace{}
		namespace.Name = home.Name
		if err := s.seedObject(namespace); err != nil {
			return err
		}
	}
	if err := s.admitObject(what, object); err != nil {
		return err
	}
	if object.GetUID() == "" {
		object.SetUID(s.nextUID())
	}
	if object.GetCreationTimestamp().Time.IsZero() {
		object.SetCreationTimestamp(s.apiTime())
	}
	if object.GetGeneration() == 0 && hasGeneration(kind) {
		object.SetGeneration(1)
	}
	if err := s.fillDefaults(what, object); err != nil {
		return err
	}
	s.storeObject(kind, object)
	return nil
}
