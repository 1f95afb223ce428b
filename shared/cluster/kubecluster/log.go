package kubecluster

import (
	"log/slog"

	"k8s.io/klog/v2"
)

// LogTo has what client-go says told by the logger, line for line like everything
// else. It is one logger for the whole process, and without it client-go writes
// text to stderr.
func LogTo(logger *slog.Logger) { klog.SetSlogLogger(logger) }
