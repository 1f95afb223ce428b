package testbed

import (
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/lambdaruntime"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// MaxTemplateAge is the age at which launch templates are deleted.
const MaxTemplateAge = 10 * time.Second

// StartJoist starts a process for each service from the folder of binaries. Services outside the cluster run as
// Lambda functions or poll their queues.
func (w *TestBed) StartJoist(dir string, lambda bool) {
	w.Helper()
	w.InstallIntoCluster(dir, Installation{})
	w.StartOutside(dir, lambda)
}

// StartOutside starts the services outside the cluster, as Lambda functions or as pollers of their queues. It is called
// after the services in the cluster are started, or runs functions.
func (w *TestBed) StartOutside(dir string, lambda bool) {
	w.Helper()
	for _, service := range outside {
		if lambda {
			w.startFunction(dir, service)
			continue
		}
		w.processes = append(w.processes, startProcess(w.T, dir, service, w.functionEnvironment(service)))
	}
	w.Cleanup(func() {
		if w.Failed() {
			for _, p := range w.processes {
				p.killProcess()
			}
		}
		for _, p := range w.functions {
			p.killProcess()
		}
	})
}

// startFunction runs a service as a Lambda function with its queue.
func (w *TestBed) startFunction(dir, service string) {
	f, m := w.functionOf(service)
	environ := w.functionEnvironment(service)
	w.functionNames = append(w.functionNames, f.FunctionName)
	var runtime lambdaruntime.Invoker = w.Server.Lambda
	if w.options.LambdaEmulator == "" {
		w.functions = append(w.functions, startProcess(w.T, dir, service, append(environ, w.Server.FunctionRuntime(f.FunctionName)...)))
	} else {
		emulator, err := lambdaruntime.NewEmulator(w.Ctx)
		w.RequireNoError(err)
		environ = append(environ, "AWS_LAMBDA_FUNCTION_NAME="+f.FunctionName, "AWS_LAMBDA_FUNCTION_TIMEOUT="+strconv.Itoa(f.Timeout))
		w.functions = append(w.functions, startEmulator(w.T, w.options.LambdaEmulator, emulator, filepath.Join(dir, "joist-"+service), environ))
		runtime = emulator
	}
	q, _ := w.Broker.FindQueue(template.Name(m.EventSourceArn))
	mapping := lambdaruntime.Mapping{
		Runtime: runtime, Function: f.FunctionName, Queue: q, Batch: m.BatchSize, Timeout: time.Duration(f.Timeout) * time.Second, Region: Region,
	}
	w.background.Go(func() { mapping.Run(w.Ctx) })
}

// inClusterEnvironment returns the environment by the chart, without fixed ports, because services share this
// machine.
func (w *TestBed) inClusterEnvironment(service string) []string {
	w.Helper()
	environ := slices.Concat(w.processEnvironment(service), w.podEnvironment(service),
		[]string{settings.ClusterUID + "=", settings.MetricsPort + "=0", settings.HealthPort + "=0"})
	environ = append(environ, w.metricsEnvironment(service)...)
	if w.options.Environ != nil {
		environ = append(environ, w.options.Environ(service)...)
	}
	return environ
}

// RestartJoist kills every service at the same moment and starts each again.
func (w *TestBed) RestartJoist() {
	for _, list := range [][]*process{w.processes, w.functions} {
		for _, p := range list {
			p.killProcess()
		}
	}
	for _, name := range w.functionNames {
		w.Server.Lambda.ExitProcess(name)
	}
	for _, list := range [][]*process{w.processes, w.functions} {
		for i, p := range list {
			w.stoppedProcesses, list[i] = append(w.stoppedProcesses, p), p.begin()
		}
	}
	w.Logf("kill -9 and restart of every service of Joist")
}

// ServiceAccount returns the Kubernetes user of a service.
func ServiceAccount(service string) string {
	return "system:serviceaccount:" + Namespace + ":joist-" + service
}
