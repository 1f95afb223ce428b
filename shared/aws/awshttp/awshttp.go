// Package awshttp prevents AWS clients from cutting connections.
//
// After a response has begun, the SDK (smithy-go 1.28) closes the body of the request. If net/http has not yet
// checked whether that body has ended, it now does so through WriteTo, which returns "EOF" as an error, and net/http
// closes the connection while the response is being read. Large responses to requests with a body are then lost, more
// often the faster the server responds: mostly over loopback, occasionally on a busy machine.
//
// The fix hides WriteTo, so that net/http uses Read, which has no such effect.
package awshttp

import (
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// WithSafeBodies returns a configuration whose HTTP client does not cut connections.
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

// safeClient is an HTTP client that hides WriteTo of request bodies.
type safeClient struct {
	next aws.HTTPClient
}

// Do sends a copy of the request whose body has only Read and Close.
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
