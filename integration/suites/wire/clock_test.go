package wire

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// clock is the real clock, which a test can move forward. Requests take real time, and no
// test waits for a visibility timeout.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// world is a fake AWS with its models.
type world struct {
	*fakeaws.Server
	clock  *clock
	broker *memqueue.Broker
	blobs  *memblob.Store
}

// productionConfig returns the AWS configuration of the services: the SDK's default from the environment, with its HTTP
// client and its three attempts. Only the pauses between the attempts are shorter.
func productionConfig(t *testing.T, server *fakeaws.Server) aws.Config {
	t.Helper()
	none := filepath.Join(t.TempDir(), "none")
	for _, variable := range append(server.Environ(), "AWS_CONFIG_FILE="+none, "AWS_SHARED_CREDENTIALS_FILE="+none) {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	loaded, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(fakeaws.Region))
	if err != nil {
		t.Fatal(err)
	}
	loaded.Retryer = func() aws.Retryer { return retry.AddWithMaxBackoffDelay(retry.NewStandard(), time.Millisecond) }
	return loaded
}

func start(t *testing.T) world {
	t.Helper()
	c := &clock{}
	w := world{
		clock:  c,
		broker: memqueue.New(memqueue.Options{Now: c.Now, Seed: 1}),
		blobs:  memblob.New(memblob.Options{Now: c.Now, Seed: 1}),
	}
	w.Server = fakeaws.Start(t, fakeaws.Options{Broker: w.broker, Blobs: w.blobs})
	return w
}
