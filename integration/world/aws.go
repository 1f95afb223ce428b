package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/integration/fakeaws"
	fakeec2 "github.com/joist-autoscaler/joist/integration/fakeaws/ec2"
	fakeeks "github.com/joist-autoscaler/joist/integration/fakeaws/eks"
	fakeiam "github.com/joist-autoscaler/joist/integration/fakeaws/iam"
	fakepricing "github.com/joist-autoscaler/joist/integration/fakeaws/pricing"
	fakessm "github.com/joist-autoscaler/joist/integration/fakeaws/ssm"
	fakests "github.com/joist-autoscaler/joist/integration/fakeaws/sts"
	fakeshift "github.com/joist-autoscaler/joist/integration/fakeaws/zonalshift"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/memblob"
	"github.com/joist-autoscaler/joist/shared/memcloud"
	"github.com/joist-autoscaler/joist/shared/memqueue"
	"github.com/joist-autoscaler/joist/shared/queue"
)

const (
	// bus is where facts are published. AWS's own events come by the bus
	// "default".
	bus = ClusterName + "-joist"
	// tickEvery is how often the ticks come. EventBridge Scheduler's finest is a
	// minute.
	tickEvery = 5 * time.Second
	// bootMean and shutdown are how long EC2 takes here.
	bootMean, shutdown = time.Second, time.Second
	// machinesEvery is how often a small world looks at EC2's machines.
	machinesEvery = 20 * time.Millisecond
)

func queueName(service string) string { return ClusterName + "-" + service }

// startAWS serves the models, with the queues and rules that the CDK app makes.
func (w *World) startAWS() {
	w.Helper()
	var err error
	w.Catalogue, err = catalog.Embedded(Region)
	w.Check(err)
	w.Broker = memqueue.New(memqueue.Options{Now: time.Now, Seed: 1})
	events := w.Broker.Bus("default").In("123456789012", Region)
	w.Cloud = memcloud.New(memcloud.Options{
		Now: time.Now, Seed: 1, Region: Region, Catalogue: w.Catalogue, Boot: w.options.Boot, Shutdown: shutdown,
		Events: func(raw []byte) {
			if w.options.Notice != nil {
				w.options.Notice(raw)
			}
			if err := events.Put(raw); err != nil {
				w.trouble <- err
			}
		},
	})
	w.AWS = w.Cloud.Furnish(ClusterName)
	w.wire(events, w.Broker.Bus(bus).In("123456789012", Region))
	w.Server = fakeaws.Start(w.T, fakeaws.Options{
		Broker: w.Broker, Blobs: memblob.New(memblob.Options{Now: time.Now, Seed: 1}),
		More: []fakeaws.Service{fakeec2.New(w.Cloud), fakeiam.New(w.Cloud), fakessm.New(w.Cloud), fakeeks.New(w.Cloud), fakests.New(w.Cloud), fakepricing.New(w.Cloud), fakeshift.New(w.Cloud)},
	})
	w.Say("AWS is at %s", w.Server.URL)
}

// wire makes each queue with its dead-letter queue, and the rules of the buses.
func (w *World) wire(aws, facts *memqueue.Bus) {
	w.Helper()
	for _, service := range append([]string{"lifecycle"}, outside...) {
		dead := queueName(service) + "-dead"
		w.Broker.Queue(dead, memqueue.QueueOptions{Retention: 14 * 24 * time.Hour})
		w.Broker.Queue(queueName(service), memqueue.QueueOptions{Visibility: 30 * time.Second, MaxReceives: 100, DeadLetter: dead})
	}
	w.Check(facts.Rule(memqueue.Rule{
		Name: ClusterName + "-inbox", Pattern: inboxPattern(),
		Targets: []memqueue.Target{{ID: "inbox", Queue: queueName("lifecycle"), InputPath: "$.detail", DeadLetter: queueName("lifecycle") + "-dead"}},
	}))
	for _, rule := range event.NoticeRules {
		w.Check(aws.Rule(memqueue.Rule{
			Name: ClusterName + "-" + rule.Name, Pattern: rule.Pattern,
			Targets: []memqueue.Target{{ID: "interruption", Queue: queueName("interruption"), DeadLetter: queueName("interruption") + "-dead"}},
		}))
	}
}

// inboxPattern selects the facts that lifecycle consumes, as the contract says.
func inboxPattern() string {
	var types []string
	for _, spec := range event.Specs {
		if spec.Fact() && slices.Contains(spec.Consumers, "lifecycle") {
			types = append(types, fmt.Sprintf("%q", spec.Type))
		}
	}
	return fmt.Sprintf(`{"source":[{"prefix":"joist/"}],"detail-type":[%s],"detail":{"cluster":[%q]}}`, strings.Join(types, ","), ClusterName)
}

// tick is EventBridge Scheduler.
func (w *World) tick() error {
	due := time.Now()
	maker := event.Maker{Service: "scheduler", Cluster: w.ID}
	for _, t := range []struct{ service, want string }{
		{"catalog", event.WantCatalogue}, {"catalog", event.WantInventory},
		{"interruption", event.WantStatus}, {"launcher", event.WantTemplates},
	} {
		// The catalogue is large and does not change: once is enough.
		if t.want == event.WantCatalogue && due.Sub(w.Began) > time.Minute {
			continue
		}
		e, err := maker.New(due, event.Tick{Want: t.want, Due: due.UTC()}, nil)
		if err != nil {
			return err
		}
		q, _ := w.Broker.Lookup(queueName(t.service))
		if err := queue.Publish(w.Ctx, q, e); err != nil {
			return err
		}
	}
	return nil
}
