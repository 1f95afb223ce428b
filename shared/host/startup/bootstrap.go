package startup

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"github.com/joist-autoscaler/joist/shared/aws/awscalls"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/s3blob"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/build"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/host/telemetry"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/eventbus"
	"github.com/joist-autoscaler/joist/shared/queue/sqsqueue"
)

// Service is a service's name, its help text and the variables that it reads.
type Service struct {
	// Name is the short name: "planner".
	Name string
	// Purpose is the sentence that --help prints.
	Purpose string
	// Required are the variables that must be set in addition to requiredByAll; Optional are others that the service
	// reads.
	Required, Optional []string
	// Profiles serves profiles if settings.Profiling is set; nil serves none.
	Profiles http.Handler
}

var (
	requiredByAll = []string{settings.ClusterName, settings.Region}
	readByAll     = append([]string{settings.ClusterUID, settings.LogLevel, settings.MetricsPort, settings.HealthPort, settings.CloudWatch}, settings.OpenTelemetry...)
)

func (s Service) helpText() string {
	return settings.HelpText(s.Purpose, slices.Concat(requiredByAll, s.Required), slices.Concat(s.Optional, readByAll))
}

// RunService runs a service of one cluster from the command line.
func RunService(s Service, run func(ctx context.Context, p *Bootstrap) error) {
	host.Main(host.Command{Name: "joist-" + s.Name, Help: s.helpText(), Run: func(ctx context.Context) error {
		p, err := Open(ctx, s)
		if err != nil {
			return err
		}
		// A failure loses only the last few spans.
		defer func() { _ = p.Telemetry.Close() }()
		if err := checkCredentials(ctx, p.AWS); err != nil {
			return err
		}
		return run(ctx, p)
	}})
}

// Bootstrap holds the components of one service for one cluster.
type Bootstrap struct {
	settings.Settings
	Service   Service
	Telemetry *telemetry.Telemetry
	ErrorLog  *host.RateLimitedLog
	// AWS has the credentials for the cluster: the process's own, or those of the role that it assumes for the
	// cluster.
	AWS aws.Config

	process *processState
}

// processState is shared by the Bootstraps of all clusters.
type processState struct {
	telemetry *telemetry.Telemetry
	// aws has the process's own credentials.
	aws        aws.Config
	heartbeats []*telemetry.Heartbeat
	// servesSeveral means that the process serves more than one cluster.
	servesSeveral bool
}

// Open reads the environment of one cluster and creates its Bootstrap, without any network call.
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

// openClusters creates a Bootstrap for each cluster.
func openClusters(ctx context.Context, s Service, clusters []settings.Settings) ([]*Bootstrap, error) {
	first := clusters[0]
	o := telemetry.Options{
		Service: s.Name, Version: build.Read().Version, Cluster: first.Cluster.Name, Out: os.Stdout, Level: first.LogLevel, Tracing: first.Tracing,
		CloudWatch: cloudWatchTarget(first),
	}
	if len(clusters) > 1 {
		o.Cluster = ""
	}
	telemetry.DiscardSDKErrors()
	told, err := telemetry.New(ctx, o)
	if err != nil {
		return nil, err
	}
	told.ReportSDKErrors()
	loaded, err := loadAWS(ctx, s, first.Region)
	if err != nil {
		return nil, err
	}
	loaded.Logger = sdkLogger(told.Log)
	var all []*Bootstrap
	common := &processState{telemetry: told, aws: awscalls.Observe(loaded, told.AWSHooks()), servesSeveral: len(clusters) > 1}
	for _, read := range clusters {
		voice := told
		if common.servesSeveral {
			if voice, err = told.ForCluster(read.Cluster.Name); err != nil {
				return nil, err
			}
		}
		for _, warning := range read.Warnings {
			voice.Log.Warn("setting ignored", "error", warning)
		}
		all = append(all, &Bootstrap{
			Settings: read, Service: s, Telemetry: voice, ErrorLog: voice.ErrorLog(), AWS: common.clusterConfig(loaded, read, s.Name, voice), process: common,
		})
	}
	return all, nil
}

// loadAWS loads the process's own AWS configuration. Requests name the service and its version (app/joist-launcher-v0.1.0
// in the User-Agent that CloudTrail records), unless AWS_SDK_UA_APP_ID sets another name.
func loadAWS(ctx context.Context, s Service, region string) (aws.Config, error) {
	loaded, err := config.LoadDefaultConfig(ctx, config.WithRegion(region))
	if err != nil {
		return aws.Config{}, fault.E("reading AWS's configuration", fault.Invalid, err).
			WithHint("check AWS_PROFILE and the files in ~/.aws")
	}
	loaded.AppID = cmp.Or(loaded.AppID, build.UserAgent("joist-"+s.Name))
	return loaded, nil
}

// sdkLogger writes the messages of the AWS SDK as log lines of the service. The SDK's own logger writes lines that are not JSON.
func sdkLogger(log *slog.Logger) logging.Logger {
	return logging.LoggerFunc(func(class logging.Classification, format string, args ...any) {
		level := slog.LevelWarn
		if class == logging.Debug {
			level = slog.LevelDebug
		}
		log.Log(context.Background(), level, "AWS SDK", "text", fmt.Sprintf(format, args...))
	})
}

// clusterConfig returns the AWS configuration for a cluster, whose calls count for the cluster.
func (p *processState) clusterConfig(loaded aws.Config, of settings.Settings, service string, to *telemetry.Telemetry) aws.Config {
	config := assumeRole(p.aws, of.RoleARN, service, of.Cluster.Name)
	config.APIOptions = loaded.APIOptions
	return awscalls.Observe(config, to.AWSHooks())
}

// credentialsTimeout is the timeout for retrieving credentials.
const credentialsTimeout = 30 * time.Second

// checkCredentials fails early if there are no AWS credentials; otherwise every call would fail with a different
// error.
func checkCredentials(ctx context.Context, who aws.Config) error {
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	if _, err := who.Credentials.Retrieve(ctx); err != nil {
		return fault.E("finding AWS credentials", fault.Denied, err).
			WithHint("give the pod, task or function a role, or set AWS_PROFILE")
	}
	return nil
}

// BlobStore returns the store of documents.
func (p *Bootstrap) BlobStore() blob.Store {
	return s3blob.New(p.AWS, p.Bucket, p.Prefix, settings.Bucket)
}

// EventBus returns the sender to the EventBridge bus.
func (p *Bootstrap) EventBus() queue.Sender { return eventbus.New(p.AWS, p.Bus, settings.Bus) }

// AccountID returns the AWS account in the URL of the service's own queue, or "" if the URL has none.
func (p *Bootstrap) AccountID() string { return accountFromQueueURL(p.QueueURL) }

// Queue returns the queue with a URL, which variable configures.
func (p *Bootstrap) Queue(url, variable string) queue.Queue {
	return sqsqueue.New(p.AWS, url, variable)
}

// ownQueue returns the service's own queue, with the process's credentials: a message must be returnable even if the
// cluster's role cannot be assumed.
func (p *Bootstrap) ownQueue(url string) queue.Queue {
	return sqsqueue.New(p.process.aws, url, settings.QueueURL)
}

// NewEventHandler turns a service's handler of envelopes into a handler of messages. It filters by cluster, type and
// expiry, and adds a span.
func (p *Bootstrap) NewEventHandler(types []event.Type, handle func(ctx context.Context, e event.Envelope) error) host.Handler {
	return host.NewEventHandler(host.EnvelopeFilter{Cluster: p.Cluster, Types: types, Now: time.Now}, p.Telemetry.TraceHandler(handle))
}

// NewWorker returns a worker that applies a handler to the service's own queue.
func (p *Bootstrap) NewWorker(handle host.Handler) host.Worker {
	return host.Worker{
		Service: p.Service.Name, Queue: p.ownQueue(p.QueueURL), Dead: p.Queue(p.DeadLetterURL, settings.DeadLetterURL),
		Handle: handle, Log: p.Telemetry.LogMessage, Now: time.Now,
	}
}

// cloudWatchTarget returns where metrics go. A function writes them to its log, which CloudWatch reads.
func cloudWatchTarget(s settings.Settings) string {
	if s.Lambda != "" {
		return telemetry.ToLog
	}
	return s.CloudWatch
}
