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

// Options are the models to serve; a nil one is not served.
type Options struct {
	// Broker has the queues and the buses.
	Broker *memqueue.Broker
	// Blobs are the objects of Bucket, which is the constant unless said otherwise.
	Blobs  *memblob.Store
	Bucket string
	// More are further APIs (EC2 and its neighbours).
	More []Service
	// Guard stands before all of it, if there is one.
	Guard func(next http.Handler) http.Handler
}

// Server is a fake AWS that runs.
type Server struct {
	*Mux
	// URL is what AWS_ENDPOINT_URL has to be.
	URL string
	// Lambda has the functions that run here.
	Lambda *lambdaruntime.Runtime
}

// Start serves on a free loopback port until the test ends. Requests that no
// service knows fail the test.
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
	if o.Guard != nil {
		handler = o.Guard(mux)
	}
	server := httptest.NewUnstartedServer(handler)
	// Ending the context first ends the long polls, for which Close would wait.
	server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	server.Start()
	t.Cleanup(func() {
		cancel()
		server.Close()
		if strange := mux.Strange(); len(strange) > 0 {
			t.Errorf("requests that no service of the fake knows: %q", strange)
		}
	})
	return &Server{Mux: mux, URL: server.URL, Lambda: lambda}
}

// Config makes AWS clients that call the server.
func (s *Server) Config() aws.Config {
	return aws.Config{
		Region: Region, BaseEndpoint: aws.String(s.URL), HTTPClient: http.DefaultClient,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDFAKE", "secret", ""),
	}
}

// QueueURL is the URL of a queue of the broker.
func (s *Server) QueueURL(name string) string { return sqs.URL(s.URL, name) }

// Environ is the environment of a process that is to call the server.
func (s *Server) Environ() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + s.URL, "AWS_REGION=" + Region,
		"AWS_ACCESS_KEY_ID=AKIDFAKE", "AWS_SECRET_ACCESS_KEY=secret", "AWS_EC2_METADATA_DISABLED=true",
	}
}

// FunctionEnviron is Environ with what makes an aws-lambda-go binary the
// function of that name.
func (s *Server) FunctionEnviron(function string) []string {
	return append(s.Environ(), s.FunctionRuntime(function)...)
}

// FunctionRuntime is that part of it alone.
func (s *Server) FunctionRuntime(function string) []string {
	address := lambdaruntime.Address(strings.TrimPrefix(s.URL, "http://"), function)
	return []string{"AWS_LAMBDA_RUNTIME_API=" + address, "AWS_LAMBDA_FUNCTION_NAME=" + function}
}
