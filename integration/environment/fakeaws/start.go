package fakeaws

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/events"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/lambdaruntime"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/s3"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/sqs"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

const (
	// Region is the only region.
	Region = "eu-west-1"
	// Bucket is the only bucket.
	Bucket = "joist"
)

// Options are the served models; a nil model is not served.
type Options struct {
	// Broker has the queues and the buses.
	Broker *memqueue.Broker
	// Blobs are the objects of the bucket, whose name is Bucket by default.
	Blobs  *memblob.Store
	Bucket string
	// More are additional APIs, such as EC2.
	More []Service
	// WrapHandler wraps the server's handler; nil for none.
	WrapHandler func(next http.Handler) http.Handler
}

// Server is a running fake AWS.
type Server struct {
	*Mux
	// URL is the value for AWS_ENDPOINT_URL.
	URL string
	// Lambda runs the functions on this machine.
	Lambda *lambdaruntime.Runtime
	// CutConnections closes every connection of a client at once, also those with requests in flight.
	CutConnections func()
}

// Start serves on a free loopback port until the test ends. Requests that no service
// recognizes fail the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	lambda := lambdaruntime.New()
	services := append([]Service{lambda}, o.More...)
	if o.Broker != nil {
		services = append(services, sqs.New(o.Broker), events.New(o.Broker))
	}
	if o.Blobs != nil {
		services = append(services, s3.New(cmp.Or(o.Bucket, Bucket), o.Blobs))
	}
	mux := New(services...)
	ctx, cancel := context.WithCancel(context.Background())
	var handler http.Handler = mux
	if o.WrapHandler != nil {
		handler = o.WrapHandler(mux)
	}
	server := httptest.NewUnstartedServer(handler)
	// Cancelling the context first ends the long polls, which Close would wait for.
	server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	server.Start()
	t.Cleanup(func() {
		cancel()
		server.Close()
		if strange := mux.listUnrecognized(); len(strange) > 0 {
			t.Errorf("requests that no fake service supports: %q", strange)
		}
	})
	return &Server{Mux: mux, URL: server.URL, Lambda: lambda, CutConnections: server.CloseClientConnections}
}

// Config returns the configuration of AWS clients for the server.
func (s *Server) Config() aws.Config {
	return aws.Config{
		Region: Region, BaseEndpoint: aws.String(s.URL), HTTPClient: http.DefaultClient,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDFAKE", "secret", ""),
	}
}

// QueueURL returns the URL of a queue of the broker.
func (s *Server) QueueURL(name string) string { return sqs.URL(s.URL, name) }

// Environ returns the environment of a process that calls the server.
func (s *Server) Environ() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + s.URL, "AWS_REGION=" + Region,
		"AWS_ACCESS_KEY_ID=AKIDFAKE", "AWS_SECRET_ACCESS_KEY=secret", "AWS_EC2_METADATA_DISABLED=true",
	}
}

// FunctionEnviron returns Environ and the variables that make an aws-lambda-go binary the
// function of that name.
func (s *Server) FunctionEnviron(function string) []string {
	return append(s.Environ(), s.FunctionRuntime(function)...)
}

// FunctionRuntime returns only the variables of the function.
func (s *Server) FunctionRuntime(function string) []string {
	address := lambdaruntime.Address(strings.TrimPrefix(s.URL, "http://"), function)
	return []string{"AWS_LAMBDA_RUNTIME_API=" + address, "AWS_LAMBDA_FUNCTION_NAME=" + function}
}
