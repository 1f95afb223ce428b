package apiproxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// errCut ends a watch: the proxy then ends the answer without its regular end.
var errCut = errors.New("the watch is cut")

// cutBody ends after a number of bytes.
type cutBody struct {
	io.ReadCloser
	left int
}

func (b *cutBody) Read(into []byte) (int, error) {
	if b.left <= 0 {
		return 0, errCut
	}
	n, err := b.ReadCloser.Read(into[:min(len(into), b.left)])
	b.left -= n
	return n, err
}

// bookmarkFilter passes on the events of a watch except bookmarks.
type bookmarkFilter struct {
	io.Closer
	events *bufio.Reader
	binary bool
	ready  bytes.Buffer
}

func newBookmarkFilter(answer *http.Response) *bookmarkFilter {
	return &bookmarkFilter{
		Closer: answer.Body, events: bufio.NewReader(answer.Body),
		binary: strings.Contains(answer.Header.Get("Content-Type"), "protobuf"),
	}
}

func (f *bookmarkFilter) Read(into []byte) (int, error) {
	for f.ready.Len() == 0 {
		frame, err := f.readFrame()
		if err != nil {
			return 0, err
		}
		if !isBookmark(frame, f.binary) {
			f.ready.Write(frame)
		}
	}
	return f.ready.Read(into)
}

// lengthBytes is the size of the length in front of a protobuf event.
const lengthBytes = 4

// readFrame reads one event: a line of JSON, or a length and as many bytes of protobuf
// (k8s.io/apimachinery/pkg/util/framer).
func (f *bookmarkFilter) readFrame() ([]byte, error) {
	if !f.binary {
		line, err := f.events.ReadBytes('\n')
		if len(line) > 0 {
			return line, nil
		}
		return nil, err
	}
	length, err := f.events.Peek(lengthBytes)
	if err != nil {
		return nil, err
	}
	frame := make([]byte, lengthBytes+int(binary.BigEndian.Uint32(length)))
	_, err = io.ReadFull(f.events, frame)
	return frame, err
}

// isBookmark reports whether an event only has a resourceVersion. The bookmark that ends a streamed list is more than
// that: an API server always sends it.
func isBookmark(frame []byte, binary bool) bool {
	if bytes.Contains(frame, []byte(metav1.InitialEventsAnnotationKey)) {
		return false
	}
	if !binary {
		var event struct{ Type watch.EventType }
		return json.Unmarshal(frame, &event) == nil && event.Type == watch.Bookmark
	}
	var event metav1.WatchEvent
	return event.Unmarshal(frame[lengthBytes:]) == nil && event.Type == string(watch.Bookmark)
}
