package emf

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Agent is a CloudWatch agent that takes lines at a TCP port, 25888 unless its
// configuration says otherwise
// (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Generation_CloudWatch_Agent.html).
// Its role writes to CloudWatch; who sends to it needs no right at AWS.
type Agent struct {
	// Address is a host and a port.
	Address string
}

// agentTime bounds what sending may take.
const agentTime = 5 * time.Second

// Send hands lines over. There are some each minute, so that each time is a connection of
// its own: an agent that was restarted, or is another, is found again.
func (a Agent) Send(ctx context.Context, lines []byte) error {
	ctx, cancel := context.WithTimeout(ctx, agentTime)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", a.Address)
	if err != nil {
		return fmt.Errorf("reaching the CloudWatch agent: %w", err)
	}
	defer connection.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = connection.SetDeadline(deadline)
	}
	if _, err := connection.Write(lines); err != nil {
		return fmt.Errorf("sending metrics to the CloudWatch agent: %w", err)
	}
	return nil
}
