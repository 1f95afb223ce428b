// Package awshttp keeps the connections of AWS clients whole.
//
// After an answer has begun, the SDK (smithy-go 1.28) closes the body of the
// request. Where net/http had not yet looked whether that body goes on, it
// looks now through WriteTo, which answers "EOF" as if it were a failure; and
// net/http cuts the connection while the answer is being read. Large answers
// to requests with a body are then lost, the sooner the server answers the more
// often: most over loopback, now and then on a busy machine.
//
// The remedy is to hide WriteTo: Read answers the same question harmlessly.
package awshttp

import (
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// WithSafeBodies gives a configuration whose HTTP client does not cut connections.
func WithSafeBodies(config aws.Config) aws.Config {
	if _, done := config.HTTPClient.(safeClient); done {
		return config
	}
	if config.HTTPClient == nil {
		config.HTTPClient = sdk.NewBuildableClient()
	}
	config.HTTPClient = safeClient{config.HTTPClient}
	return config
}

// safeClient is another client that gets plain bodies.
type safeClient struct {
	next aws.HTTPClient
}

// Do sends a copy of the request, with a body that can be read and closed, and
// nothing else.
func (c safeClient) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r = r.WithContext(r.Context())
		r.Body = readCloserBody{r.Body}
	}
	return c.next.Do(r)
}

// readCloserBody hides the other methods of a body.
type readCloserBody struct {
	io.ReadCloser
}
