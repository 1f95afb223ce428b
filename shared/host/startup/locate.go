package startup

import (
	"context"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/queue/sqsqueue"
)

// locateQueue finds the URL of the service's own queue where only Karpenter's name of it
// is given. The queue is in our own account and region, as Karpenter's is.
func (p *Bootstrap) locateQueue(ctx context.Context) error {
	if p.QueueURL != "" || p.InterruptionQueue == "" || !slices.Contains(p.Service.Optional, settings.Interruptions) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	arn, err := sqsqueue.QueueARN(ctx, p.process.aws, p.InterruptionQueue)
	if err == nil {
		p.QueueURL, _, err = queueURLFromARN(arn)
	}
	if err != nil {
		return fmt.Errorf("finding the URL of the queue %s, as %s is not set: %w", p.InterruptionQueue, settings.QueueURL, err)
	}
	return nil
}
