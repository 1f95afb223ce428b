// Package kube reads objects of a cluster with the permissions of the caller. It never writes,
// and it needs only a function that reads a path of the API server.
package kube

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Reader reads a path of the API server. Its error is fault.Missing if the object does not
// exist.
type Reader func(ctx context.Context, path string) ([]byte, error)

// pageSize is the maximum number of objects in one answer.
const pageSize = 500

// List reads all objects of a kind, page by page. A kind that the API server does not serve has
// none.
func List[T any](ctx context.Context, read Reader, path string) ([]T, error) {
	var all []T
	for next := ""; ; {
		var page struct {
			Metadata struct{ Continue string }
			Items    []T
		}
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		query := separator + "limit=" + strconv.Itoa(pageSize)
		if next != "" {
			query += "&continue=" + url.QueryEscape(next)
		}
		if _, err := Get(ctx, read, path+query, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if next = page.Metadata.Continue; next == "" {
			return all, nil
		}
	}
}

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
