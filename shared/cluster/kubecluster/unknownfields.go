package kubecluster

import (
	"context"
	encodingjson "encoding/json"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// isWrittenByUsers reports whether users write objects of the kind. Such an object may have fields that this version
// does not know, because the CRDs can be newer than Joist: during an upgrade, or if Karpenter installed them.
func isWrittenByUsers(kind cluster.Kind) bool {
	return slices.Contains([]cluster.Kind{cluster.NodePools, cluster.NodeClasses}, kind)
}

// updateKnownFields sends an update that keeps the fields of the stored object which this version does not know.
func (c *Client) updateKnownFields(ctx context.Context, what call, object, into cluster.Object) error {
	body, err := c.keepUnknownFields(ctx, what, object)
	if err != nil {
		return err
	}
	return c.sendRequest(ctx, what, body, into)
}

// keepUnknownFields returns the body of an update: the object, with the fields of the stored one that its Go type does
// not have. An update without them would remove them. If the stored object has another version, the body is the object
// alone, and the server answers the update with a conflict.
func (c *Client) keepUnknownFields(ctx context.Context, update call, object cluster.Object) ([]byte, error) {
	get := call{verb: verbGet, kind: update.kind, key: update.key}
	request, err := c.newRequest(get)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result := request.Do(ctx)
	// The error of Raw has the HTTP status alone. This one has the Status object of the answer too.
	if err := result.Error(); err != nil {
		return nil, get.classifyError(err)
	}
	text, err := result.Raw()
	if err != nil {
		return nil, get.classifyError(err)
	}
	known := get.kind.New()
	var stored map[string]any
	if err := encodingjson.Unmarshal(text, known); err != nil {
		return nil, fault.E("decoding the answer of "+get.String(), fault.Retry, err)
	}
	if err := utiljson.Unmarshal(text, &stored); err != nil {
		return nil, fault.E("decoding the answer of "+get.String(), fault.Retry, err)
	}
	before, err := toMap(known)
	if err != nil {
		return nil, err
	}
	after, err := toMap(object)
	if err != nil {
		return nil, err
	}
	if known.GetResourceVersion() == object.GetResourceVersion() {
		addUnknownFields(after, stored, before)
	}
	after["apiVersion"], after["kind"] = get.kind.APIVersion(), get.kind.Kind
	body, err := encodingjson.Marshal(after)
	if err != nil {
		return nil, fault.E("encoding the body of "+update.String(), fault.Bug, err)
	}
	return body, nil
}

// toMap returns the JSON of an object as a map.
func toMap(object runtime.Object) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fault.E("encoding an object", fault.Bug, err)
	}
	return out, nil
}

// addUnknownFields adds to an object what the stored one has and its Go type, in known, lacks. A list is one value: it
// stays as stored if the object does not change it.
func addUnknownFields(object, stored, known map[string]any) {
	for name, value := range stored {
		was, isKnown := known[name]
		now, stays := object[name]
		switch {
		case !isKnown && !stays:
			object[name] = value
		case !isKnown || !stays:
			// A field that the object sets or removes.
		case reflect.DeepEqual(was, now):
			object[name] = value
		default:
			inner, isObject := now.(map[string]any)
			from, wasStored := value.(map[string]any)
			before, wasKnown := was.(map[string]any)
			if isObject && wasStored && wasKnown {
				addUnknownFields(inner, from, before)
			}
		}
	}
}
