module github.com/joist-autoscaler/joist/integration/cataloggen

go 1.26.0

require (
	github.com/joist-autoscaler/joist/shared v0.0.0
	github.com/klauspost/compress v1.20.3
)

replace github.com/joist-autoscaler/joist/shared => ../../shared
