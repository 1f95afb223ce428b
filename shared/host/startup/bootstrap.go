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

func (s Service) helpText() string {
	return settings.HelpText(s.Purpose, slices.Concat(requiredByAll, s.Required), slices.Concat(s.Optional, readByAll))
}

// RunService runs the command line of a service of one cluster.
func RunService(s Service, run func(ctx context.Context, p *Bootstrap) error) {
	host.Main(host.Command{Name: "joist-" + s.Name, Help: s.helpText(), Run: func(ctx context.Context) error {
		p, err := Open(ctx, s)
		if err != nil {
			return err
		}
		// What is lost here is the last few spans.
		defer func() { _ = p.Telemetry.Close() }()
		if err := checkCredentials(ctx, p.AWS); err != nil {
			return err
		}
		return run(ctx, p)
	}})
}

// Bootstrap are the parts of one service for one cluster.
type Bootstrap struct {
	settings.Settings
	Service   Service
	Telemetry *telemetry.Telemetry
	ErrorLog  *host.RateLimitedLog
	// AWS is who the service is to AWS: the process, or the role that it takes for the
	// cluster.
	AWS aws.Config

	process *processState
}

// processState is what the parts of all clusters have in common.
type processState struct {
	telemetry *telemetry.Telemetry
	// aws is who the process itself is to AWS.
	aws        aws.Config
	heartbeats []*telemetry.Heartbeat
	// servesSeveral says that there are parts of more than one cluster.
	servesSeveral bool
}

// Open reads the environment of one cluster and makes the parts. It calls nobody.
func Open(ctx context.Context, s Service) (*Bootstrap, error) {
	read, err := settings.Read(os.LookupEnv, slices.Concat(requiredByAll, s.Required)...)
	if err != nil {
		return nil, err
	}
	all, err := openClusters(ctx, s, []settings.Settings{read})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// openClusters makes the parts for each cluster.
func openClusters(ctx context.Context, s Service, clusters []settings.Settings) ([]*Bootstrap, error) {
	first := clusters[0]
	o := telemetry.Options{
		Service: s.Name, Version: host.Version(), Cluster: first.Cluster.Name, Out: os.Stdout, Level: first.LogLevel, Export: first.Traces,
		CloudWatch: cloudWatchTarget(first),
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
	var all []*Bootstrap
	common := &processState{telemetry: told, aws: loaded, servesSeveral: len(clusters) > 1}
	for _, read := range clusters {
		voice := told
		if common.servesSeveral {
			if voice, err = told.ForCluster(read.Cluster.Name); err != nil {
				return nil, err
			}
		}
		all = append(all, &Bootstrap{
			Settings: read, Service: s, Telemetry: voice, ErrorLog: voice.ErrorLog(), AWS: assumeRole(loaded, read.RoleARN, s.Name, read.Cluster.Name), process: common,
		})
	}
	return all, nil
}

// credentialsTimeout is enough for a role's credentials to be handed out.
const credentialsTimeout = 30 * time.Second

// checkCredentials makes sure that AWS will know us: without credentials every single
// call would fail, each with its own words.
func checkCredentials(ctx context.Context, who aws.Config) error {
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	if _, err := who.Credentials.Retrieve(ctx); err != nil {
		return fault.E("finding AWS credentials", fault.Denied, err).
			WithHint("give the pod, task or function a role, or set AWS_PROFILE")
	}
	return nil
}

// BlobStore is the store of documents.
func (p *Bootstrap) BlobStore() blob.Store {
	return s3blob.New(p.AWS, p.Bucket, p.Prefix, settings.Bucket)
}

// EventBus is the bus.
func (p *Bootstrap) EventBus() queue.Sender { return eventbus.New(p.AWS, p.Bus, settings.Bus) }

// AccountID is the AWS account of the service's own queue, as its URL says it, or
// "" if it does not.
func (p *Bootstrap) AccountID() string { return accountFromQueueURL(p.QueueURL) }

// Queue is a queue by its URL, which the variable says.
func (p *Bootstrap) Queue(url, variable string) queue.Queue {
	return sqsqueue.New(p.AWS, url, variable)
}

// ownQueue is a queue that the service works on. That is the process's business, whatever
// role it has to take for the cluster: a message must be given back although the role
// cannot be taken.
func (p *Bootstrap) ownQueue(url string) queue.Queue {
	return sqsqueue.New(p.process.aws, url, settings.QueueURL)
}

// NewEventHandler makes a handler of messages from a service's handler of envelopes, with
// the gate before it and a span around it.
func (p *Bootstrap) NewEventHandler(types []event.Type, handle func(ctx context.Context, e event.Envelope) error) host.Handler {
	return host.NewEventHandler(host.EnvelopeFilter{Cluster: p.Cluster, Types: types, Now: time.Now}, p.Telemetry.TraceHandler(handle))
}

// NewWorker applies a handler to the service's own queue.
func (p *Bootstrap) NewWorker(handle host.Handler) host.Worker {
	return host.Worker{
		Service: p.Service.Name, Queue: p.ownQueue(p.QueueURL), Dead: p.Queue(p.DeadLetterURL, settings.DeadLetterURL),
		Handle: handle, Log: p.Telemetry.LogMessage, Now: time.Now,
	}
}

// cloudWatchTarget is where metrics go: a function's log is read by CloudWatch already.
func cloudWatchTarget(s settings.Settings) string {
	if s.Lambda != "" {
		return telemetry.ToLog
	}
	return s.CloudWatch
}
