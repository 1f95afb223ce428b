package peers

import (
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joist-autoscaler/joist/shared/cloud/cloudtest"
	"github.com/joist-autoscaler/joist/shared/cloud/ec2cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/ekscluster"
	"github.com/joist-autoscaler/joist/shared/cloud/iamprofile"
	"github.com/joist-autoscaler/joist/shared/cloud/pricing"
	"github.com/joist-autoscaler/joist/shared/cloud/ssmparameters"
	"github.com/joist-autoscaler/joist/shared/cloud/zonalshift"
)

// account has all adapters of package cloud, connected to one server.
type account struct {
	ec2cloud.Cloud
	ssmparameters.Parameters
	ekscluster.Clusters
	iamprofile.Profiles
	pricing.Prices
	zonalshift.Shifts
}

func newAccount(server aws.Config) account {
	return account{
		ec2cloud.New(server), ssmparameters.New(server), ekscluster.New(server), iamprofile.New(server),
		pricing.New(server), zonalshift.New(server),
	}
}

// TestMotoCloud runs the cloud suite against moto. Faults cannot be injected into moto,
// so shortages, denials, lost responses and zonal shifts are not tried.
func TestMotoCloud(t *testing.T) {
	at := peers(t)
	t.Parallel()
	url := startMoto(t, at)
	server := config(url)
	server.RetryMaxAttempts = 1
	cloudtest.Run(t, func(t *testing.T) cloudtest.Subject {
		resetMoto(t, url)
		return cloudtest.Subject{
			Cloud: newAccount(server),
			World: createAccount(t, server),
			// moto changes states at once.
			Features: cloudtest.Features{Wait: func(time.Duration) {}},
		}
	})
}

// resetMoto resets moto.
func resetMoto(t *testing.T, url string) {
	t.Helper()
	response, err := http.Post(url+"/moto-api/reset", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("moto did not reset its state: %s", response.Status)
	}
}

// createAccount creates the suite's resources by direct API calls. moto supports neither
// capacity reservations nor placement groups, so the suite skips what needs them.
func createAccount(t *testing.T, server aws.Config) cloudtest.World {
	t.Helper()
	f := furnisher{t, server}
	network := f.network()
	image := f.image()
	f.parameter("/joist/image", image.ID)
	f.role("node")
	f.role("other")
	return cloudtest.World{
		Region: region, Cluster: f.cluster("web", network.subnets), ImageParameter: "/joist/image",
		Subnets: network.subnets, SecurityGroup: network.group, TagKey: tagKey, TagValue: tagValue,
		Image: image, Type: "m6i.large", Role: "node", OtherRole: "other",
	}
}
