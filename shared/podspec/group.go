package podspec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Classes groups specs as they come in. The zero value is ready.
type Classes struct {
	byKey map[string]*scheduling.PodClass
}

// Add counts a pod of a spec.
func (c *Classes) Add(spec scheduling.PodSpec, ref scheduling.PodRef) error {
	key, err := Key(spec)
	if err != nil {
		return err
	}
	if c.byKey == nil {
		c.byKey = map[string]*scheduling.PodClass{}
	}
	class := c.byKey[key]
	if class == nil {
		class = &scheduling.PodClass{Spec: spec}
		c.byKey[key] = class
	}
	class.Pods = append(class.Pods, ref)
	return nil
}

// List gives the classes in the order of their keys, and the pods of each by age
// and UID, so that the order of arrival does not show.
func (c *Classes) List() []scheduling.PodClass {
	var out []scheduling.PodClass
	for _, key := range slices.Sorted(maps.Keys(c.byKey)) {
		class := *c.byKey[key]
		class.Pods = slices.Clone(class.Pods)
		slices.SortFunc(class.Pods, func(a, b scheduling.PodRef) int {
			return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
		})
		out = append(out, class)
	}
	return out
}

// Key is equal for specs that planning cannot tell apart.
func Key(spec scheduling.PodSpec) (string, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("writing the key of a pod in namespace %s: %w", spec.Namespace, err)
	}
	return string(text), nil
}

// Group converts and groups pods. volumes may be nil when none matter.
func Group(pods []*corev1.Pod, named Named, volumes func(*corev1.Pod) []scheduling.Volume) ([]scheduling.PodClass, error) {
	var classes Classes
	for _, pod := range pods {
		var claims []scheduling.Volume
		if volumes != nil {
			claims = volumes(pod)
		}
		if err := classes.Add(Convert(pod, named, claims), Ref(pod)); err != nil {
			return nil, err
		}
	}
	return classes.List(), nil
}
