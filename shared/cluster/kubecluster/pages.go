package kubecluster

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// ListPages reads all objects of a kind in pages, for a process that reads a cluster once and does
// not watch it: those of a namespace and with labels, where "" means all. The order is by namespace
// and name. seen is called with each page, which it may
// trim, and the number of objects so far. If the list expires between two pages, it is read again
// from the beginning, in one piece. The error is fault.Missing if the server does not serve the kind.
func (c *Client) ListPages(ctx context.Context, kind cluster.Kind, namespace, labels string, seen func(page []cluster.Object, total int)) ([]cluster.Object, error) {
	what := call{verb: verbList, kind: kind, key: cluster.Key{Namespace: namespace}}
	options := metav1.ListOptions{Limit: pageSize, LabelSelector: labels}
	var out []cluster.Object
	for {
		page, next, err := c.listPage(ctx, what, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			out, options = nil, metav1.ListOptions{LabelSelector: labels}
			continue
		}
		if isKindMissing(err) {
			return nil, fault.E(what.String(), fault.Missing, err).
				WithHint("install the CustomResourceDefinition of %s %s", kind.APIVersion(), kind.Kind)
		}
		if err != nil {
			return nil, what.classifyError(err)
		}
		out = append(out, page...)
		seen(page, len(out))
		if next == "" {
			slices.SortFunc(out, compare)
			return out, nil
		}
		options.Continue = next
	}
}

// listPage reads one page, and returns the token of the next one.
func (c *Client) listPage(ctx context.Context, what call, options metav1.ListOptions) ([]cluster.Object, string, error) {
	list, err := c.scheme.New(groupVersion(what.kind).WithKind(what.kind.Kind + "List"))
	if err != nil {
		return nil, "", fault.E(what.String(), fault.Bug, err)
	}
	request, err := c.newRequest(what)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := request.VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(list); err != nil {
		return nil, "", err
	}
	part, err := meta.ListAccessor(list)
	if err != nil {
		return nil, "", fault.E(what.String(), fault.Bug, err)
	}
	out := make([]cluster.Object, 0, meta.LenList(list))
	err = meta.EachListItem(list, func(item runtime.Object) error {
		out = append(out, item.(cluster.Object))
		return nil
	})
	return out, part.GetContinue(), err
}
