// Package s3 implements the part of S3's REST protocol that Joist calls, in path style,
// on memblob: one bucket, whole objects.
package s3

import (
	"crypto/md5" //nolint:gosec // the protocol's own checksum
	"encoding/hex"
	"encoding/xml"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Service is the API.
type Service struct {
	bucket string
	store  *memblob.Store
}

// New returns a service with the store as its only bucket.
func New(bucket string, store *memblob.Store) *Service { return &Service{bucket: bucket, store: store} }

// Match recognizes S3 by the service in the request's signature, because its paths are
// arbitrary.
func (s *Service) Match(r *http.Request, _ []byte) bool {
	return strings.Contains(r.Header.Get("Authorization"), "/s3/aws4_request")
}

// ServeHTTP serves an object or, without a key, the list of objects.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case bucket != s.bucket:
		refuse(w, http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
	case key == "" && r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "2":
		s.list(w, r)
	case key != "" && r.Method == http.MethodPut:
		s.put(w, r, key)
	case key != "" && r.Method == http.MethodGet:
		s.get(w, r, key)
	case key != "" && r.Method == http.MethodHead:
		s.head(w, r, key)
	default:
		refuse(w, http.StatusNotImplemented, "NotImplemented", "the fake does not support "+r.Method+" with these parameters")
	}
}

func (s *Service) put(w http.ResponseWriter, r *http.Request, key string) {
	if strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked") {
		refuse(w, http.StatusNotImplemented, "NotImplemented", "the fake does not support chunked signatures")
		return
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "IncompleteBody", err.Error())
		return
	}
	if err := s.store.Put(r.Context(), key, data); err != nil {
		answer(w, err)
		return
	}
	w.Header().Set("ETag", etag(data))
}

func (s *Service) get(w http.ResponseWriter, r *http.Request, key string) {
	data, err := s.store.Get(r.Context(), key)
	if err != nil {
		answer(w, err)
		return
	}
	written, err := s.store.LastWritten(r.Context(), key)
	if err != nil {
		answer(w, err)
		return
	}
	w.Header().Set("ETag", etag(data))
	w.Header().Set("Last-Modified", written.UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	// Writing fails only if the client has disconnected.
	_, _ = w.Write(data) //nolint:gosec // an object is no page: no browser calls a fake on loopback
}

// head responds without a body, also to errors, as HTTP requires.
func (s *Service) head(w http.ResponseWriter, r *http.Request, key string) {
	written, err := s.store.LastWritten(r.Context(), key)
	if err != nil {
		answer(w, err)
		return
	}
	w.Header().Set("Last-Modified", written.UTC().Format(http.TimeFormat))
}

// pageSize is the maximum number of keys in a page. It is below S3's 1000, so that a few objects already
// need several pages; S3 may also return fewer keys than requested.
const pageSize = 4

type list struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name                  string
	Prefix                string
	KeyCount              int
	MaxKeys               int
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []content
}

type content struct {
	Key          string
	Size         int
	LastModified string
}

// list serves one page of the objects. The continuation token is the last key of the page before.
func (s *Service) list(w http.ResponseWriter, r *http.Request) {
	prefix, after := r.URL.Query().Get("prefix"), r.URL.Query().Get("continuation-token")
	out := list{Name: s.bucket, Prefix: prefix, MaxKeys: 1000}
	for object, err := range s.store.List(r.Context(), prefix) {
		if err != nil {
			answer(w, err)
			return
		}
		if object.Key <= after {
			continue
		}
		if len(out.Contents) == pageSize {
			out.IsTruncated, out.NextContinuationToken = true, out.Contents[pageSize-1].Key
			break
		}
		out.Contents = append(out.Contents, content{object.Key, object.Size, object.LastWritten.UTC().Truncate(time.Second).Format("2006-01-02T15:04:05.000Z")})
	}
	out.KeyCount = len(out.Contents)
	write(w, http.StatusOK, out)
}

// answer responds with S3's error for an error of the model. For a write with a lost
// response it closes the connection.
func answer(w http.ResponseWriter, err error) {
	switch fault.KindOf(err) {
	case fault.Unknown:
		panic(http.ErrAbortHandler)
	case fault.Missing:
		refuse(w, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	case fault.Invalid:
		refuse(w, http.StatusBadRequest, "EntityTooLarge", err.Error())
	case fault.Throttled:
		refuse(w, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
	default:
		refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable", err.Error())
	}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	write(w, status, struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}{Code: code, Message: message})
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	// Writing fails only if the client has disconnected.
	_, _ = io.WriteString(w, xml.Header)
	_ = xml.NewEncoder(w).Encode(body)
}

func etag(data []byte) string {
	sum := md5.Sum(data) //nolint:gosec // the protocol's own checksum
	return `"` + hex.EncodeToString(sum[:]) + `"`
}
