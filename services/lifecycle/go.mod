module github.com/joist-autoscaler/joist/services/lifecycle

go 1.26.0

require github.com/joist-autoscaler/joist/shared v0.0.0

replace github.com/joist-autoscaler/joist/shared => ../../shared
