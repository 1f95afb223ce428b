// Package kube reads objects of a cluster, with the rights of whoever runs the command.
// It writes nothing, and needs no client but what fetches a path.
package kube

import (
	"context"
	"encoding/json"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Reader reads a path of the API server's. What is not there is fault.Missing.
type Reader func(ctx context.Context, path string) ([]byte, error)

// Get reads an object; one that does not exist leaves it as it is, and reports false.
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
