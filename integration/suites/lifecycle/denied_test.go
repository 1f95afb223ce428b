package lifecycle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// claimRights removes verbs for PersistentVolumeClaims from the service account's role.
// restore adds them again.
func (s *site) claimRights(without ...string) (restore func()) {
	s.Helper()
	roles := s.kube.RbacV1().ClusterRoles()
	role, err := roles.Get(s.Context(), "joist-lifecycle", metav1.GetOptions{})
	s.check(err)
	whole := role.DeepCopy()
	i := slices.IndexFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "persistentvolumeclaims") })
	if i < 0 {
		s.Fatal("the role has no rule for persistentvolumeclaims")
	}
	rule := &role.Rules[i]
	rule.Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool { return slices.Contains(without, verb) })
	if len(rule.Verbs) == 0 { // the API server rejects a rule without verbs
		role.Rules = slices.Delete(role.Rules, i, i+1)
	}
	_, err = roles.Update(s.Context(), role, metav1.UpdateOptions{})
	s.check(err)
	s.waitUntil(20*time.Second, "without "+strings.Join(without, " and ")+" in effect", func() bool { return s.isDenied(without) })
	return func() {
		now, err := roles.Get(s.Context(), "joist-lifecycle", metav1.GetOptions{})
		s.check(err)
		now.Rules = whole.Rules
		_, err = roles.Update(s.Context(), now, metav1.UpdateOptions{})
		s.check(err)
	}
}

// isDenied reports whether the API server denies the service account exactly these verbs for
// PersistentVolumeClaims. The API server reads roles through its own watch, some time
// after they are written, and a watch that it permitted before continues without the
// permission.
func (s *site) isDenied(verbs []string) bool {
	s.Helper()
	for _, verb := range []string{"list", "watch"} {
		review, err := s.kube.AuthorizationV1().SubjectAccessReviews().Create(s.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:joist:joist-lifecycle",
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "persistentvolumeclaims"},
			},
		}, metav1.CreateOptions{})
		s.check(err)
		if review.Status.Allowed == slices.Contains(verbs, verb) {
			return false
		}
	}
	return true
}

// watched returns a cache of PersistentVolumeClaims with the service account's
// permissions.
func (s *site) watched() *kubecluster.Cache {
	s.Helper()
	path, err := s.plane.KubeconfigAs("system:serviceaccount:joist:joist-lifecycle")
	s.check(err)
	config, err := kubecluster.Config(path, "joist-test/v0.1.0")
	s.check(err)
	client, err := kubecluster.New(config, "joist-lifecycle")
	s.check(err)
	cache, err := client.NewCache(kubecluster.CacheOptions{Kinds: []cluster.Kind{cluster.VolumeClaims}})
	s.check(err)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { cache.Run(ctx) })
	s.Cleanup(func() { stop(); running.Wait() })
	return cache
}

// TestDeniedPermission removes a permission from lifecycle. Lifecycle reports the missing
// permission, takes no action that depends on the objects it cannot read, and continues
// when it has the permission again.
func TestDeniedPermission(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane")
	}
	t.Parallel()
	s := prepare(t)
	for _, c := range []struct {
		without []string
		// hint names the missing permission; empty if it is not needed, because this API
		// server streams lists as watches.
		hint string
	}{
		{[]string{"list", "watch"}, `grant the verb "list" on the resource "persistentvolumeclaims" of the API group ""`},
		{[]string{"watch"}, `grant the verb "watch" on the resource "persistentvolumeclaims" of the API group ""`},
		{[]string{"list"}, ""},
	} {
		restore := s.claimRights(c.without...)
		cache := s.watched()
		s.waitUntil(20*time.Second, "reported the missing permission, without "+strings.Join(c.without, " and "), func() bool {
			if c.hint == "" {
				return cache.Synced() && cache.Problem() == nil
			}
			return strings.Contains(fault.FindHint(cache.Problem()), c.hint)
		})
		restore()
	}

	restore := s.claimRights("list", "watch")
	s.run()
	m := s.machine("blind")
	m.pod("seen")
	s.check(s.admin.Delete(s.Context(), cluster.NodeClaims, cluster.Key{Name: m.name}, ""))
	s.waitUntil(20*time.Second, "reported that it may not read volume claims", func() bool {
		return strings.Contains(errors.Join(s.cache.Problem()).Error(), "persistentvolumeclaims")
	})
	time.Sleep(5 * time.Second)
	if gone, _ := m.podDeletion("seen"); gone || m.isTerminationRequested() || karpenter.HasTaint(m.node().Spec.Taints, karpenter.DisruptedTaint()) {
		s.Error("the drain started without knowing the volumes")
	}
	restore()
	m.waitUntil(90*time.Second, "evicted", func() bool { gone, _ := m.podDeletion("seen"); return gone })
	m.endPod("seen")
	m.requireTermination()
}
