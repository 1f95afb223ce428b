package convert

import (
	"regexp"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// workloads are the kinds whose pods have images, labels and annotations of Karpenter.
var workloads = []string{"Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController"}

// convertWorkload renames Karpenter's labels and annotations in a workload, and replaces images that are gone.
func (c *converter) convertWorkload(o *object) {
	if !slices.Contains(workloads, o.kind) {
		return
	}
	c.visit(o, o.root, "")
}

func (c *converter) visit(o *object, n *node, path string) {
	for _, e := range n.entries {
		at := path
		if e.key != "" {
			at = strings.TrimPrefix(path+"."+e.key, ".")
		}
		now, old := renamedLabels[e.key]
		switch {
		case old && n.kind == mappingNode && n.entry(now) == nil:
			c.remarkEntry(o, Converted, e, at, e.key+" is now "+now, "")
			e.key = now
		case e.key == "key" && e.value.kind == scalarNode:
			if now, old := renamedLabels[e.value.text()]; old {
				c.remarkEntry(o, Converted, e, at, e.value.text()+" is now "+now, "")
				e.value = newScalar(now)
			}
		case e.key == safeToEvict && n.kind == mappingNode && e.value.kind == scalarNode:
			c.convertSafeToEvict(o, n, e, at)
		case e.key == "image" && e.value.kind == scalarNode:
			c.replaceImage(o, e, at)
		}
		c.visit(o, e.value, at)
	}
}

// safeToEvict is Cluster Autoscaler's annotation of pods. "false" keeps the pod's node, and "true" allows the eviction of pods that Joist
// and Karpenter evict in any case.
const safeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"

// convertSafeToEvict replaces the annotation if it keeps the pod's node.
func (c *converter) convertSafeToEvict(o *object, annotations *node, e *entry, path string) {
	if e.value.text() != "false" || annotations.entry(karpenter.DoNotDisruptAnnotationKey) != nil {
		c.remarkEntry(o, Check, e, path, e.key+" has no effect: only "+karpenter.DoNotDisruptAnnotationKey+" keeps a pod's node", "remove it once Cluster Autoscaler is gone")
		return
	}
	c.remarkEntry(o, Converted, e, path, e.key+`: "false" is now `+karpenter.DoNotDisruptAnnotationKey+`: "true"`, "keep both while Cluster Autoscaler still manages groups with these pods")
	e.key, e.value = karpenter.DoNotDisruptAnnotationKey, newScalar("true")
}

// oldPause matches images of the pause container that are old enough to lack an architecture or to be gone.
var oldPause = regexp.MustCompile(`^(public\.ecr\.aws/eks-distro/kubernetes/pause:)(v?[12]\.[0-9.]+|v?3\.[0-6](\.[0-9]+)?)(-.*)?$`)

// currentPause is the tag that the documentation uses.
const currentPause = "3.7"

// movedRegistries are registries that serve no new images, and their successors.
var movedRegistries = []struct{ from, to string }{
	{"k8s.gcr.io/", "registry.k8s.io/"},
	{"gcr.io/google_containers/", "registry.k8s.io/"},
	{"gcr.io/google-containers/", "registry.k8s.io/"},
	{"us.gcr.io/k8s-artifacts-prod/", "registry.k8s.io/"},
}

func (c *converter) replaceImage(o *object, e *entry, path string) {
	image, why := e.value.text(), ""
	now := image
	for _, m := range movedRegistries {
		if rest, found := strings.CutPrefix(now, m.from); found {
			now, why = m.to+rest, m.from+" is frozen"
		}
	}
	if oldPause.MatchString(now) {
		now, why = oldPause.ReplaceAllString(now, "${1}"+currentPause), "the tag is old, and not published for all architectures"
	}
	if now != image {
		e.value = newScalar(now)
		c.remarkEntry(o, Converted, e, path, image+" is now "+now+": "+why, "")
	}
}
