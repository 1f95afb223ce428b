package wire

import (
	"testing"

	"github.com/joist-autoscaler/joist/services/launcher/launchertest"
	"github.com/joist-autoscaler/joist/shared/cloud/ec2cloud"
)

// TestLauncherExactlyOnce launches over HTTP, with the SDK's retries as in main: errors
// inside a 200 response, lost responses and token mismatches have EC2's formats.
func TestLauncherExactlyOnce(t *testing.T) {
	launchertest.Run(t, func(t *testing.T) launchertest.Environment {
		s := startCloud(t)
		config := s.server.Config()
		config.RetryMaxAttempts = 1
		return launchertest.Environment{EC2: ec2cloud.New(config), Model: s.model, World: s.World, Now: s.clock.Now, AdvanceClock: s.clock.Advance}
	})
}
