package convert

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// renamedLabels are labels and annotations with another name since v1beta1.
var renamedLabels = map[string]string{
	"karpenter.sh/provisioner-name":   karpenter.NodePoolLabelKey,
	"karpenter.sh/do-not-evict":       karpenter.DoNotDisruptAnnotationKey,
	"karpenter.sh/do-not-consolidate": karpenter.DoNotDisruptAnnotationKey,
}

// serverFields are the fields of the metadata that the API server sets.
var serverFields = []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

// lastApplied is the annotation in which kubectl keeps the object of the older version.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// compatibility is the prefix of annotations that Karpenter 1.0 wrote when it converted objects in the cluster.
const compatibility = "compatibility.karpenter."

// cleanMetadata removes what the API server and Karpenter wrote into an object of a live cluster, which would
// conflict or be wrong in its new version.
func (c *converter) cleanMetadata(o *object) {
	meta := o.root.get("metadata")
	if meta == nil || meta.kind != mappingNode {
		return
	}
	annotations := meta.get("annotations")
	c.renameKeys(o, annotations, "metadata.annotations")
	if !o.old && !hasCompatibility(annotations) {
		return
	}
	removed := removeServerFields(o, meta)
	if o.old {
		removed = append(removed, removeAnnotations(annotations)...)
	}
	if annotations != nil && annotations.changed && len(annotations.entries) == 0 {
		meta.take("annotations")
	}
	if len(removed) > 0 {
		c.remark(o, Converted, 0, 0, "", "removed what the API server and Karpenter write themselves: "+strings.Join(removed, ", "), "")
	}
}

// removeServerFields removes what the API server sets, and returns the paths of the removed fields.
func removeServerFields(o *object, meta *node) (removed []string) {
	for _, key := range serverFields {
		if o.old && meta.take(key) != nil {
			removed = append(removed, "metadata."+key)
		}
	}
	if status := o.root.entry("status"); o.kind == "Provisioner" && status != nil {
		o.root.take("status")
		removed = append(removed, "status")
	}
	return removed
}

// removeAnnotations removes annotations that are about the object of the older version, and returns their keys.
func removeAnnotations(annotations *node) (removed []string) {
	for _, key := range sortedMappingKeys(annotations) {
		if key == lastApplied || isHash(key) {
			annotations.take(key)
			removed = append(removed, key)
		}
	}
	return removed
}

func isHash(key string) bool {
	name, found := strings.CutPrefix(key, karpenter.Group+"/")
	if !found {
		name, found = strings.CutPrefix(key, karpenter.AWSGroup+"/")
	}
	return found && (strings.HasSuffix(name, "-hash") || strings.HasSuffix(name, "-hash-version") || name == "stored-version-migrated")
}

func hasCompatibility(annotations *node) bool {
	for _, key := range sortedMappingKeys(annotations) {
		if strings.HasPrefix(key, compatibility) {
			return true
		}
	}
	return false
}

// renameKeys renames labels or annotations that have another name now.
func (c *converter) renameKeys(o *object, n *node, path string) {
	if n == nil || n.kind != mappingNode {
		return
	}
	for _, e := range n.entries {
		now, old := renamedLabels[e.key]
		if !old || n.entry(now) != nil {
			continue
		}
		c.remarkEntry(o, Converted, e, path, e.key+" is now "+now, "")
		e.key = now
	}
}
