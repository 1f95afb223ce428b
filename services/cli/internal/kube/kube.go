// Package kube reads objects of a cluster with the permissions of the caller. It never writes,
// and it needs only a function that reads a path of the API server.
package kube

import (
	"context"
	"encoding/json"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Reader reads a path of the API server. Its error is fault.Missing if the object does not
// exist.
type Reader func(ctx context.Context, path string) ([]byte, error)

// Get reads an object. It reports false, and leaves the object unchanged, if it does not
// exist.
func Get[T any](ctx context.Context, read Reader, path string, into *T) (bool, error) {
	text, err := read(ctx, path)
	if fault.Is(err, fault.Missing) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, fault.E("reading "+path, fault.Invalid, err)
	}
	return true, nil
}
