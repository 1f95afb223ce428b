package parts

import (
	"context"
	"os"
	"path"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/eventbus"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/s3blob"
	"github.com/joist-autoscaler/joist/shared/settings"
	"github.com/joist-autoscaler/joist/shared/sqsqueue"
	"github.com/joist-autoscaler/joist/shared/telemetry"
)

// Service says what a service is called and which variables it reads.
type Service struct {
	// Name is the service's: "planner".
	Name string
	// Purpose is its sentence in --help.
	Purpose string
	// Required are the variables that must be set beside those that every service
	// requires; Optional are others that it reads.
	Required, Optional []string
}

var (
	requiredByAll = []string{settings.ClusterName, settings.Region}
	readByAll     = []string{settings.ClusterUID, settings.LogLevel, settings.MetricsPort, settings.HealthPort, settings.Traces}
)

// Main runs the service's command line.
func Main(s Service, run func(ctx context.Context, p *Parts) error) {
	host.Main(host.Command{
		Name: "joist-" + s.Name,
		Help: settings.Help(s.Purpose, slices.Concat(requiredByAll, s.Required), slices.Concat(s.Optional, readByAll)),
		Run: func(ctx context.Context) error {
			p, err := Open(ctx, s)
			if err != nil {
				return err
			}
			// What is lost here is the last few spans.
			defer func() { _ = p.Telemetry.Close() }()
			if err := p.identified(ctx); err != nil {
				return err
			}
			if err := p.locate(ctx); err != nil {
				return err
			}
			return run(ctx, p)
		},
	})
}

// Parts are the parts of one service.
type Parts struct {
	settings.Settings
	Service   Service
	Telemetry *telemetry.Telemetry
	Trouble   *host.Trouble
	AWS       aws.Config

	pulses []*telemetry.Pulse
}

// Open reads the environment and makes the parts. It calls nobody.
func Open(ctx context.Context, s Service) (*Parts, error) {
	read, err := settings.Read(os.LookupEnv, slices.Concat(requiredByAll, s.Required)...)
	if err != nil {
		return nil, err
	}
	told, err := telemetry.New(ctx, telemetry.Options{
		Service: s.Name, Version: host.Version(), Cluster: read.Cluster.Name, Out: os.Stdout, Level: read.LogLevel, Export: read.Traces,
		CloudWatch: read.Lambda != "",
	})
	if err != nil {
		return nil, err
	}
	loaded, err := config.LoadDefaultConfig(ctx, config.WithRegion(read.Region))
	if err != nil {
		return nil, fault.E("reading AWS's configuration", fault.Invalid, err).
			WithHint("see whether AWS_PROFILE and the files in ~/.aws are right")
	}
	return &Parts{Settings: read, Service: s, Telemetry: told, Trouble: told.Trouble(), AWS: loaded}, nil
}

// credentialsTime is enough for a role's credentials to be handed out.
const credentialsTime = 30 * time.Second

// identified makes sure that AWS will know us: without credentials every single
// call would fail, each with its own words.
func (p *Parts) identified(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, credentialsTime)
	defer cancel()
	if _, err := p.AWS.Credentials.Retrieve(ctx); err != nil {
		return fault.E("finding AWS credentials", fault.Denied, err).
			WithHint("give the pod, task or function a role, or set AWS_PROFILE")
	}
	return nil
}

// Blobs is the store of documents.
func (p *Parts) Blobs() blob.Store {
	return s3blob.New(p.AWS, p.Bucket, p.Prefix, settings.Bucket)
}

// Facts is the bus.
func (p *Parts) Facts() queue.Sender { return eventbus.New(p.AWS, p.Bus, settings.Bus) }

// Account is the AWS account of the service's own queue, as its URL says it, or
// "" if it does not.
func (p *Parts) Account() string { return accountOf(p.QueueURL) }

// Queue is a queue by its URL, which the variable says.
func (p *Parts) Queue(url, variable string) queue.Queue { return sqsqueue.New(p.AWS, url, variable) }

// Source is the queue of a Lambda record: the one that is set, where that is
// it, or else the one that the ARN names.
func (p *Parts) Source(arn string) (queue.Queue, error) {
	url, err := urlOf(arn)
	if err != nil {
		return nil, err
	}
	if path.Base(url) == path.Base(p.QueueURL) {
		url = p.QueueURL
	}
	return p.Queue(url, settings.QueueURL), nil
}

// Events makes a handler of messages from a service's handler of envelopes, with
// the gate before it and a span around it.
func (p *Parts) Events(types []event.Type, handle func(ctx context.Context, e event.Envelope) error) host.Handler {
	return host.Events(host.Accept{Cluster: p.Cluster, Types: types, Now: time.Now}, p.Telemetry.Trace(handle))
}

// Worker applies a handler to the service's own queue.
func (p *Parts) Worker(handle host.Handler) host.Worker {
	return host.Worker{
		Service: p.Service.Name, Queue: p.Queue(p.QueueURL, settings.QueueURL), Dead: p.Queue(p.DeadLetterURL, settings.DeadLetterURL),
		Handle: handle, Log: p.Telemetry.Line, Now: time.Now,
	}
}
