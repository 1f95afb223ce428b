package podspec

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// Classes groups pods as they are added. The zero value is ready to use.
type Classes struct {
	// Claims looks up the ResourceClaims of added pods; nil if devices are not planned.
	Claims *Claims

	byKey map[string]int32
	// keys and specs are parallel, in the order in which classes were added.
	keys  []string
	specs []*planning.PodSpec
	// pods is the current block of pods, and full has the blocks before it. One list of all pods would be copied as it grows,
	// which takes much time and memory.
	pods []member
	full [][]member
	// draft and key are reused for each pod.
	draft draft
	key   key
	// texts and room are the current blocks for keys and specs. Full blocks are kept alive by their
	// contents.
	texts strings.Builder
	room  []planning.PodSpec
}

// member is a pod and the index of its class.
type member struct {
	class int32
	ref   planning.PodRef
}

// Group converts and groups pods. volumes may be nil if volumes do not matter.
func Group(pods []*corev1.Pod, keys SelectorKeys, volumes func(*corev1.Pod) []planning.Volume) []planning.PodClass {
	var c Classes
	for _, pod := range pods {
		var claims []planning.Volume
		if volumes != nil {
			claims = volumes(pod)
		}
		c.AddPod(pod, keys, claims)
	}
	return c.List()
}

// AddPod converts a pod like Convert and adds it. A pod of a known class allocates almost nothing.
func (c *Classes) AddPod(pod *corev1.Pod, keys SelectorKeys, volumes []planning.Volume) {
	c.count(c.read(pod, keys, volumes))
}

// AddPending is AddPod, except that it does not add a pod whose spec is larger than MaxSpec, and
// returns false.
func (c *Classes) AddPending(pod *corev1.Pod, keys SelectorKeys, volumes []planning.Volume) bool {
	ref := c.read(pod, keys, volumes)
	if c.key.draft(&c.draft); len(c.key.bytes) > MaxSpec {
		return false
	}
	c.enter(ref)
	return true
}

// AddBound is AddPod for a running pod. If its spec is larger than MaxSpec, the class keeps only the
// pod's requests and anti-affinity, and the pod is not moved.
func (c *Classes) AddBound(pod *corev1.Pod, keys SelectorKeys, volumes []planning.Volume) {
	ref := c.read(pod, keys, volumes)
	c.key.draft(&c.draft)
	for _, reduce := range []func(*draft){(*draft).fix, (*draft).strip} {
		if len(c.key.bytes) <= MaxSpec {
			break
		}
		reduce(&c.draft)
		c.key.draft(&c.draft)
	}
	c.enter(ref)
}

// read sets the draft from a pod, and returns the pod's reference.
func (c *Classes) read(pod *corev1.Pod, keys SelectorKeys, volumes []planning.Volume) planning.PodRef {
	c.draft.read(pod, keys, volumes)
	ref := Ref(pod)
	c.draft.spec.Claims, ref.Claims = c.Claims.Of(pod)
	return ref
}

// Add adds a pod with a converted spec.
func (c *Classes) Add(spec planning.PodSpec, ref planning.PodRef) {
	c.draft.readSpec(&spec)
	c.count(ref)
}

// count adds a pod to the class of the draft.
func (c *Classes) count(ref planning.PodRef) {
	c.key.draft(&c.draft)
	c.enter(ref)
}

// enter adds a pod to the class of the key.
func (c *Classes) enter(ref planning.PodRef) {
	class, known := c.byKey[string(c.key.bytes)]
	if !known {
		class = c.open()
	}
	if had := cap(c.pods); len(c.pods) == had {
		c.full, c.pods = append(c.full, c.pods), make([]member, 0, min(max(2*had, podsMin), podsMax))
	}
	c.pods = append(c.pods, member{class, ref})
}

// open adds a class with the draft as its spec.
func (c *Classes) open() int32 {
	if c.byKey == nil {
		c.byKey = map[string]int32{}
	}
	class, text := int32(len(c.keys)), c.keep(c.key.bytes)
	c.byKey[text] = class
	c.keys = append(c.keys, text)
	c.specs = append(c.specs, c.finish())
	return class
}

// The sizes of blocks: each is twice as large as the one before.
const (
	textsMin, textsMax = 1 << 9, 1 << 16 // bytes
	roomMin, roomMax   = 1 << 2, 1 << 9  // specs
	podsMin, podsMax   = 1 << 3, 1 << 9  // pods
)

// keep copies a key.
func (c *Classes) keep(text []byte) string {
	if had := c.texts.Cap(); had-c.texts.Len() < len(text) {
		c.texts.Reset()
		c.texts.Grow(max(len(text), min(max(2*had, textsMin), textsMax)))
	}
	from := c.texts.Len()
	c.texts.Write(text)
	return c.texts.String()[from:]
}

// finish returns the spec of the draft.
func (c *Classes) finish() *planning.PodSpec {
	if had := cap(c.room); len(c.room) == had {
		c.room = make([]planning.PodSpec, 0, min(max(2*had, roomMin), roomMax))
	}
	c.room = append(c.room, c.draft.finish())
	return &c.room[len(c.room)-1]
}

// List returns the classes sorted by key, and the pods of each by age and UID, so that the result does
// not depend on the order of Add calls. The lists of pods share one block of memory.
func (c *Classes) List() []planning.PodClass {
	if len(c.keys) == 0 {
		return nil
	}
	order := make([]int32, len(c.keys))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(c.keys[a], c.keys[b]) })
	lists := c.lists()
	out := make([]planning.PodClass, len(order))
	for i, class := range order {
		sortPods(lists[class])
		out[i] = planning.PodClass{Spec: *c.specs[class], Pods: lists[class]}
	}
	return out
}

// lists returns the pods of each class, in the order of Add calls.
func (c *Classes) lists() [][]planning.PodRef {
	counts, all, blocks := make([]int, len(c.keys)), 0, append(slices.Clone(c.full), c.pods)
	for _, block := range blocks {
		all += len(block)
		for i := range block {
			counts[block[i].class]++
		}
	}
	rest := make([]planning.PodRef, all)
	out := make([][]planning.PodRef, len(c.keys))
	for class, count := range counts {
		out[class], rest = rest[:0:count], rest[count:]
	}
	for _, block := range blocks {
		for i := range block {
			class := block[i].class
			out[class] = append(out[class], block[i].ref)
		}
	}
	return out
}

func sortPods(pods []planning.PodRef) {
	// Not cmp.Or, which would always compare all three.
	older := func(a, b planning.PodRef) int {
		if by := a.Created.Compare(b.Created); by != 0 {
			return by
		}
		if by := strings.Compare(a.UID, b.UID); by != 0 {
			return by
		}
		return cmp.Compare(a.Name, b.Name)
	}
	if !slices.IsSortedFunc(pods, older) {
		slices.SortFunc(pods, older)
	}
}
