package stack

import (
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// ReadConfig reads the config from an app's context. It ignores the CDK's keys, which contain
// a colon or an at sign, and rejects other unknown keys.
func ReadConfig(app awscdk.App) (config.Config, error) {
	if all, ok := app.Node().GetAllContext(nil).(map[string]any); ok {
		for _, key := range sortedKeys(all) {
			if !strings.ContainsAny(key, ":@") && !slices.Contains(config.Keys(), key) {
				return config.Config{}, fault.F("reading the stack's configuration", fault.Invalid, "unknown context key %s", key).
					WithHint("the keys are %s", strings.Join(config.Keys(), ", "))
			}
		}
	}
	return config.Read(func(key string) any { return app.Node().TryGetContext(jsii.String(key)) })
}
