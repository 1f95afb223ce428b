package startup

import (
	"context"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/queue/sqsqueue"
)

// locateQueue sets the URL of the service's own queue if only Karpenter's INTERRUPTION_QUEUE name is set. The queue
// is in the process's account and region, as in Karpenter.
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
