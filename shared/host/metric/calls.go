package metric

import "slices"

var (
	allServices = slices.Concat(functionServices, reconcilingServices)

	// Karpenter's labels of calls to the Kubernetes API.
	labelHTTPMethod         = Label{Name: "method", Help: "the HTTP method", Max: 6}
	labelVerb               = Label{Name: "verb", Help: "GET, LIST, CREATE, UPDATE, PATCH or DELETE", Max: 6}
	labelGroup              = Label{Name: "group", Help: "the API group, or empty for the core group", Max: 12, Bare: true, Implied: true}
	labelAPIVersion         = Label{Name: "version", Help: "the version of the API group", Max: 3, Implied: true}
	labelKubernetesResource = Label{Name: "kind", Help: "the resource, such as nodeclaims", Max: 30}
	labelSubresource        = Label{Name: "subresource", Help: "status, eviction, or empty", Max: 3, Bare: true}
	labelHost               = Label{Name: "host", Help: "the API server", Max: 1}
	// Karpenter's labels of calls to AWS.
	labelKubernetesCode = Label{Name: "code", Help: "the HTTP status, or an error without one", Max: 15}
	labelAWSService     = Label{Name: "service", Help: "the AWS service, such as EC2", Max: 10, Implied: true}
	labelAction         = Label{Name: "action", Help: "the operation, such as CreateFleet", Max: 45}
	labelAWSCode        = Label{Name: "code", Help: "the HTTP status, or 0 without an answer", Max: 15}
	awsCallLabels       = []Label{labelAWSService, labelAction, labelAWSCode}
)

// callSeconds are buckets for calls to an API.
var callSeconds = []float64{.005, .025, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60}

// Metrics of calls to Kubernetes and AWS. The names client_go_… and aws_sdk_go_… are Karpenter's
// (https://karpenter.sh/docs/reference/metrics/), and rest_client_… is controller-runtime's.
var (
	KubernetesCalls = Metric{
		Name: "client_go_request_total", Kind: Counter, Unit: "{request}",
		Help:   "Requests to the Kubernetes API, including the starts of watches.",
		Labels: []Label{labelKubernetesCode, labelHTTPMethod}, Services: reconcilingServices,
		Panel: "Kubernetes API calls", By: []string{"method", "code"},
	}
	KubernetesCallTime = Metric{
		Name: "client_go_request_duration_seconds", Kind: Histogram, Unit: "s", Buckets: callSeconds,
		Help:   "Time of a request to the Kubernetes API, without watches.",
		Labels: []Label{labelVerb, labelGroup, labelAPIVersion, labelKubernetesResource, labelSubresource}, Services: reconcilingServices,
		Panel: "Kubernetes API latency", By: []string{"verb"},
	}
	KubernetesLimiterWait = Metric{
		Name: "rest_client_rate_limiter_duration_seconds", Kind: Histogram, Unit: "s", Buckets: callSeconds,
		Help:   "Time that a request to the Kubernetes API waited in the rate limiter of the client.",
		Labels: []Label{{Name: "verb", Help: "the HTTP method", Max: 6}, labelHost}, Services: reconcilingServices,
		Panel: "Kubernetes API latency", By: []string{"verb"},
	}
	WatchesStarted = Metric{
		Name: "joist_watches_started_total", Kind: Counter, Unit: "{watch}",
		Help:   "Watches of the Kubernetes API that were started, by result. The API server ends each watch after some minutes.",
		Labels: []Label{labelKubernetesResource, labelResult}, Services: reconcilingServices,
		Panel: "Kubernetes API calls", By: []string{"kind", "result"},
	}
	AWSCalls = Metric{
		Name: "aws_sdk_go_request_total", Kind: Counter, Unit: "{request}",
		Help:   "Requests to AWS, by the status of the last attempt.",
		Labels: awsCallLabels, Services: allServices,
		Panel: "AWS API calls", By: []string{"service", "action", "code"},
	}
	AWSCallTime = Metric{
		Name: "aws_sdk_go_request_duration_seconds", Kind: Histogram, Unit: "s", Buckets: callSeconds,
		Help:   "Time of a request to AWS, with all attempts and the pauses between them.",
		Labels: awsCallLabels, Services: allServices,
		Panel: "AWS API latency", By: []string{"service"},
	}
	AWSRetries = Metric{
		Name: "aws_sdk_go_request_retry_count", Kind: Histogram, Unit: "{retry}", Buckets: []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		Help:   "Retries of a request to AWS.",
		Labels: awsCallLabels, Services: allServices,
		Panel: "AWS throttling and retries", By: []string{"service"},
	}
	AWSAttempts = Metric{
		Name: "aws_sdk_go_request_attempt_total", Kind: Counter, Unit: "{attempt}",
		Help:   "Attempts of requests to AWS.",
		Labels: awsCallLabels, Services: allServices,
		Panel: "AWS throttling and retries", By: []string{"service"},
	}
	AWSAttemptTime = Metric{
		Name: "aws_sdk_go_request_attempt_duration_seconds", Kind: Histogram, Unit: "s", Buckets: callSeconds,
		Help:   "Time of one attempt of a request to AWS.",
		Labels: awsCallLabels, Services: allServices,
		Panel: "AWS API latency", By: []string{"service"},
	}
	AWSThrottles = Metric{
		Name: "joist_aws_throttles_total", Kind: Counter, Unit: "{attempt}",
		Help:   "Attempts of requests to AWS that AWS throttled.",
		Labels: []Label{labelAWSService, labelAction}, Services: allServices,
		Panel: "AWS throttling and retries", By: []string{"service", "action"}, CloudWatch: []string{ByCluster},
	}
)

var callMetrics = []Metric{
	KubernetesCalls, KubernetesCallTime, KubernetesLimiterWait, WatchesStarted, AWSCalls, AWSCallTime, AWSRetries, AWSAttempts, AWSAttemptTime, AWSThrottles,
}
