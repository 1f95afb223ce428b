package testbed

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws"
	fakeec2 "github.com/joist-autoscaler/joist/integration/environment/fakeaws/ec2"
	fakeeks "github.com/joist-autoscaler/joist/integration/environment/fakeaws/eks"
	fakeiam "github.com/joist-autoscaler/joist/integration/environment/fakeaws/iam"
	fakepricing "github.com/joist-autoscaler/joist/integration/environment/fakeaws/pricing"
	fakessm "github.com/joist-autoscaler/joist/integration/environment/fakeaws/ssm"
	fakests "github.com/joist-autoscaler/joist/integration/environment/fakeaws/sts"
	fakeshift "github.com/joist-autoscaler/joist/integration/environment/fakeaws/zonalshift"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

const (
	// tickEvery is how often the ticks come. EventBridge Scheduler's finest is a
	// minute.
	tickEvery = 5 * time.Second
	// bootMean and shutdown are how long EC2 takes here.
	bootMean, shutdown = time.Second, time.Second
	// machinesEvery is how often a small world looks at EC2's machines.
	machinesEvery = 20 * time.Millisecond
)

// startAWS starts the fake AWS with the resources of the CDK template.
func (w *TestBed) startAWS() {
	w.Helper()
	var err error
	w.Catalogue, err = catalog.EmbeddedCatalogue(Region)
	w.RequireNoError(err)
	w.Broker = memqueue.New(memqueue.Options{Now: time.Now, Seed: 1})
	events := w.Broker.Bus("default").SetAccount("123456789012", Region)
	w.Cloud = memcloud.New(memcloud.Options{
		Now: time.Now, Seed: 1, Region: Region, Catalogue: w.Catalogue, Boot: w.options.Boot, Shutdown: shutdown, EvenSpot: w.options.EvenSpot,
		Events: func(raw []byte) {
			if w.options.Notice != nil {
				w.options.Notice(raw)
			}
			if err := events.PutEvent(raw); err != nil {
				w.backgroundErrors <- err
			}
		},
	})
	w.AWS = w.Cloud.Furnish(ClusterName)
	// EKS returns the certificate authority of the API server, which pods and Karpenter read elsewhere.
	w.AWS.Cluster.CABundle = base64.StdEncoding.EncodeToString(w.Plane.Config.CAData)
	w.Cloud.AddCluster(w.AWS.Cluster)
	sts := fakests.New(w.Cloud)
	sts.Assumed = func(accessKey, role string) { w.authorizer.AssumeRole(accessKey, role) }
	w.Blobs = memblob.New(memblob.Options{Now: time.Now, Seed: 1})
	w.Server = fakeaws.Start(w.T, fakeaws.Options{
		Broker: w.Broker, Blobs: w.Blobs, Bucket: bucketName,
		More:        []fakeaws.Service{fakeec2.New(w.Cloud), fakeiam.New(w.Cloud), fakessm.New(w.Cloud), fakeeks.New(w.Cloud), sts, fakepricing.New(w.Cloud), fakeshift.New(w.Cloud)},
		WrapHandler: w.checkPolicies,
	})
	w.deployStack()
	w.Logf("the fake AWS is at %s", w.Server.URL)
}

// runTicks sends the messages of EventBridge Scheduler.
func (w *TestBed) runTicks() error {
	due := time.Now().UTC()
	for _, s := range w.deployed.Schedules {
		// The catalogue is large and does not change: once is enough.
		if strings.Contains(s.Target.Input, event.WantCatalogue) && due.Sub(w.Began) > time.Minute {
			continue
		}
		q, ok := w.Broker.FindQueue(template.Name(s.Target.Arn))
		if !ok {
			return fmt.Errorf("the schedule %s sends to %s, which does not exist", s.Name, s.Target.Arn)
		}
		body := strings.ReplaceAll(s.Target.Input, "<aws.scheduler.scheduled-time>", due.Format(time.RFC3339))
		// A tick that a fault of SQS drops is ignored: the next one follows.
		if err := q.Send(w.Ctx, queue.Outgoing{Body: []byte(body)}); err != nil && !fault.Is(err, fault.Retry, fault.Unknown) {
			return err
		}
	}
	return nil
}
