package lifecyclepass

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/joist-autoscaler/joist/shared/event"
)

// current is what the specs have constructed last. A suite constructs each once.
var current struct {
	config   *rest.Config
	client   client.Client
	clock    clock.Clock
	cloud    cloudprovider.CloudProvider
	recorder events.Recorder
	account  FakeAccount
	system   *system
}

// FakeAccount executes lifecycle's commands in the EC2 of the specs, and lists the instances of a cluster, in place of the specs' cloud
// provider.
type FakeAccount interface {
	Execute(ctx context.Context, command event.Envelope) error
	ListInstances(ctx context.Context, of event.Cluster, at time.Time) (event.Inventory, error)
}

// UseAccount sets the account and the name of the cluster.
func UseAccount(a FakeAccount, clusterName string) {
	if current.account != a || clusterIdentity.Name != clusterName {
		current.account, clusterIdentity.Name, current.system = a, clusterName, nil
	}
}

// UseEnvironment sets the API server, the specs' client and their clock. The test environment of the specs calls it.
func UseEnvironment(config *rest.Config, c client.Client, clk clock.Clock) {
	current.config, current.client, current.clock, current.system = config, c, clk, nil
}

// UseCloudProvider sets the cloud provider that launches and terminates instances.
func UseCloudProvider(p cloudprovider.CloudProvider) { current.cloud = p }

// UseRecorder sets the recorder of Events.
func UseRecorder(r events.Recorder) { current.recorder = r }
