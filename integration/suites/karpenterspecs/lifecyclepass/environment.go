package lifecyclepass

import (
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/events"
)

// current is what the specs have constructed last. A suite constructs each once.
var current struct {
	config   *rest.Config
	client   client.Client
	clock    clock.Clock
	cloud    cloudprovider.CloudProvider
	recorder events.Recorder
	system   *system
}

// UseEnvironment sets the API server, the specs' client and their clock. The test environment of the specs calls it.
func UseEnvironment(config *rest.Config, c client.Client, clk clock.Clock) {
	current.config, current.client, current.clock, current.system = config, c, clk, nil
}

// UseCloudProvider sets the cloud provider that launches and terminates instances.
func UseCloudProvider(p cloudprovider.CloudProvider) { current.cloud = p }

// UseRecorder sets the recorder of Events.
func UseRecorder(r events.Recorder) { current.recorder = r }
