package podspec

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Users are the pods that use each volume claim, without ended pods, and whether each is bound to a node.
type Users map[cluster.Key]map[cluster.Key]bool

// Add adds a pod, and returns the other pods that now share a claim but did not before.
func (u Users) Add(pod *corev1.Pod) []cluster.Key {
	return u.change(pod, func(users map[cluster.Key]bool) bool {
		users[cluster.KeyOf(pod)] = isBound(pod)
		return len(users) == 2
	})
}

// Remove removes a pod, and returns the other pods that no longer share a claim.
func (u Users) Remove(pod *corev1.Pod) []cluster.Key {
	return u.change(pod, func(users map[cluster.Key]bool) bool {
		delete(users, cluster.KeyOf(pod))
		return len(users) == 1
	})
}

func isBound(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }

// change applies how to the users of each claim of a pod, and returns the other users of claims for
// which it returns true.
func (u Users) change(pod *corev1.Pod, how func(users map[cluster.Key]bool) (turns bool)) []cluster.Key {
	if hasEnded(pod) {
		return nil
	}
	var out []cluster.Key
	for _, claim := range claims(pod) {
		users := u[claim]
		if users == nil {
			users = map[cluster.Key]bool{}
			u[claim] = users
		}
		if how(users) {
			for other := range users {
				if other != cluster.KeyOf(pod) {
					out = append(out, other)
				}
			}
		}
		if len(users) == 0 {
			delete(u, claim)
		}
	}
	return out
}

// claims returns the volume claims of a pod, without duplicates.
func claims(pod *corev1.Pod) []cluster.Key {
	var out []cluster.Key
	for i := range pod.Spec.Volumes {
		name, _ := claimed(pod, &pod.Spec.Volumes[i])
		if key := (cluster.Key{Namespace: pod.Namespace, Name: name}); name != "" && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// Mounts looks up the volumes of many pods, each once.
type Mounts struct {
	in    *Storage
	users Users
	found map[*corev1.Pod][]planning.Volume
}

// Mounts returns a lookup that is valid while neither the users nor the storage change.
func (u Users) Mounts(in *Storage) Mounts {
	return Mounts{in: in, users: u, found: map[*corev1.Pod][]planning.Volume{}}
}

// NewMounts returns the lookup for all pods.
func NewMounts(pods []*corev1.Pod, in *Storage) Mounts {
	users := Users{}
	for _, pod := range pods {
		users.Add(pod)
	}
	return users.Mounts(in)
}

// All returns the volumes of a pod, each with the name of its claim.
func (m Mounts) All(pod *corev1.Pod) []planning.Volume {
	if len(pod.Spec.Volumes) == 0 || hasEnded(pod) {
		return nil
	}
	list, known := m.found[pod]
	if !known {
		list = Volumes(pod, m.in)
		for i := range list {
			m.restrictVolume(pod, &list[i])
		}
		m.found[pod] = list
	}
	return list
}

// restrictVolume sets the problem of an unbound pod's volume that a bound pod uses, if its claim allows only one pod
// (kube-scheduler: pkg/scheduler/framework/plugins/volumerestrictions).
func (m Mounts) restrictVolume(pod *corev1.Pod, v *planning.Volume) {
	claim := cluster.Key{Namespace: pod.Namespace, Name: v.Claim}
	if v.Problem != "" || isBound(pod) || !m.in.allowsOnePod(claim) {
		return
	}
	var first cluster.Key
	for user, bound := range m.users[claim] {
		if bound && (first == cluster.Key{} || user.Compare(first) < 0) {
			first = user
		}
	}
	if first.Name != "" {
		v.Problem = fmt.Sprintf("pod %s uses it, and its access mode ReadWriteOncePod allows one pod at a time", first.Name)
	}
}

// Of returns the volumes of a pod, without the claim names that only this pod uses, because they would
// put equal pods into different classes. A claim with a problem keeps its name for the message to the
// user.
func (m Mounts) Of(pod *corev1.Pod) []planning.Volume {
	var out []planning.Volume
	for _, v := range m.All(pod) {
		if v.Problem == "" && len(m.users[cluster.Key{Namespace: pod.Namespace, Name: v.Claim}]) == 1 {
			v.Claim = ""
		}
		out = append(out, v)
	}
	return out
}
