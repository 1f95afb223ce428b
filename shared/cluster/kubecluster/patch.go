package kubecluster

import (
	"context"
	jsoncodec "encoding/json"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// annotationPatch is a merge patch of one annotation. The API server answers with a conflict if the
// resourceVersion differs; no two objects of one name have the same.
type annotationPatch struct {
	Metadata struct {
		ResourceVersion string             `json:"resourceVersion"`
		Annotations     map[string]*string `json:"annotations"`
	} `json:"metadata"`
}

// PatchAnnotation implements cluster.Client.
func (c *Client) PatchAnnotation(ctx context.Context, object cluster.Object, key string, value *string) error {
	kind, ok := cluster.KindOf(object)
	if !ok {
		return fault.F(verbPatch, fault.Bug, "the type %T is not in cluster.Kinds", object)
	}
	what := call{verb: verbPatch, kind: kind, key: cluster.KeyOf(object)}
	if err := what.requireName(); err != nil {
		return err
	}
	if object.GetResourceVersion() == "" {
		return fault.F(what.String(), fault.Invalid, "the object has no resourceVersion").
			WithHint("read the object before you patch it")
	}
	var patch annotationPatch
	patch.Metadata.ResourceVersion = object.GetResourceVersion()
	patch.Metadata.Annotations = map[string]*string{key: value}
	body, err := jsoncodec.Marshal(patch)
	if err != nil {
		return fault.E(what.String(), fault.Bug, err)
	}
	return c.sendRequest(ctx, what, body, nil)
}
