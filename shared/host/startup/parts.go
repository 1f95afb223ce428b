package startup

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/s3blob"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/host/telemetry"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/eventbus"
	"github.com/joist-autoscaler/joist/shared/queue/sqsqueue"
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
	readByAll     = []string{settings.ClusterUID, settings.LogLevel, settings.MetricsPort, settings.HealthPort, settings.Traces, settings.CloudWatch}
)

func (s Service) help() string {
	return settings.Help(s.Purpose, slices.Concat(requiredByAll, s.Required), slices.Concat(s.Optional, readByAll))
}

// Main runs the command line of a service of one cluster.
func Main(s Service, run func(ctx context.Context, p *Parts) error) {
	host.Main(host.Command{Name: "joist-" + s.Name, Help: s.help(), Run: func(ctx context.Context) error {
		p, err := Open(ctx, s)
		if err != nil {
			return err
		}
		// What is lost here is the last few spans.
		defer func() { _ = p.Telemetry.Close() }()
		if err := identified(ctx, p.AWS); err != nil {
			return err
		}
		return run(ctx, p)
	}})
}

// Parts are the parts of one service for one cluster.
type Parts struct {
	settings.Settings
	Service   Service
	Telemetry *telemetry.Telemetry
	Trouble   *host.Trouble
	// AWS is who the service is to AWS: the process, or the role that it takes for the
	// cluster.
	AWS aws.Config

	process *process
}

// process is what the parts of all clusters have in common.
type process struct {
	voice *telemetry.Telemetry
	// aws is who the process itself is to AWS.
	aws    aws.Config
	pulses []*telemetry.Pulse
	// several says that there are parts of more than one cluster.
	several bool
}

// Open reads the environment of one cluster and makes the parts. It calls nobody.
func Open(ctx context.Context, s Service) (*Parts, error) {
	read, err := settings.Read(os.LookupEnv, slices.Concat(requiredByAll, s.Required)...)
	if err != nil {
		return nil, err
	}
	all, err := open(ctx, s, []settings.Settings{read})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// open makes the parts for each cluster.
func open(ctx context.Context, s Service, clusters []settings.Settings) ([]*Parts, error) {
	first := clusters[0]
	o := telemetry.Options{
		Service: s.Name, Version: host.Version(), Cluster: first.Cluster.Name, Out: os.Stdout, Level: first.LogLevel, Export: first.Traces,
		CloudWatch: cloudWatch(first),
	}
	if len(clusters) > 1 {
		o.Cluster = ""
	}
	told, err := telemetry.New(ctx, o)
	if err != nil {
		return nil, err
	}
	loaded, err := config.LoadDefaultConfig(ctx, config.WithRegion(first.Region))
	if err != nil {
		return nil, fault.E("reading AWS's configuration", fault.Invalid, err).
			WithHint("see whether AWS_PROFILE and the files in ~/.aws are right")
	}
	var all []*Parts
	common := &process{voice: told, aws: loaded, several: len(clusters) > 1}
	for _, read := range clusters {
		voice := told
		if common.several {
			if voice, err = told.For(read.Cluster.Name); err != nil {
				return nil, err
			}
		}
		all = append(all, &Parts{
			Settings: read, Service: s, Telemetry: voice, Trouble: voice.Trouble(), AWS: taking(loaded, read.RoleARN, s.Name, read.Cluster.Name), process: common,
		})
	}
	return all, nil
}

// credentialsTime is enough for a role's credentials to be handed out.
const credentialsTime = 30 * time.Second

// identified makes sure that AWS will know us: without credentials every single
// call would fail, each with its own words.
func identified(ctx context.Context, who aws.Config) error {
	ctx, cancel := context.WithTimeout(ctx, credentialsTime)
	defer cancel()
	if _, err := who.Credentials.Retrieve(ctx); err != nil {
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

// own is a queue that the service works on. That is the process's business, whatever
// role it has to take for the cluster: a message must be given back although the role
// cannot be taken.
func (p *Parts) own(url string) queue.Queue {
	return sqsqueue.New(p.process.aws, url, settings.QueueURL)
}

// Events makes a handler of messages from a service's handler of envelopes, with
// the gate before it and a span around it.
func (p *Parts) Events(types []event.Type, handle func(ctx context.Context, e event.Envelope) error) host.Handler {
	return host.Events(host.Accept{Cluster: p.Cluster, Types: types, Now: time.Now}, p.Telemetry.Trace(handle))
}

// Worker applies a handler to the service's own queue.
func (p *Parts) Worker(handle host.Handler) host.Worker {
	return host.Worker{
		Service: p.Service.Name, Queue: p.own(p.QueueURL), Dead: p.Queue(p.DeadLetterURL, settings.DeadLetterURL),
		Handle: handle, Log: p.Telemetry.Line, Now: time.Now,
	}
}

// cloudWatch is where metrics go: a function's log is read by CloudWatch already.
func cloudWatch(s settings.Settings) string {
	if s.Lambda != "" {
		return telemetry.ToLog
	}
	return s.CloudWatch
}
