package emf

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Agent is a CloudWatch agent that accepts lines at a TCP port, by default 25888
// (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Generation_CloudWatch_Agent.html).
// It writes to CloudWatch with its own role, so senders need no AWS permission.
type Agent struct {
	// Address is a host and a port.
	Address string
}

// agentTime is the timeout of Send.
const agentTime = 5 * time.Second

// Send sends lines to the agent. It opens a new connection each time, so that a restarted or replaced agent is found.
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
