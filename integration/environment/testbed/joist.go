package testbed

import (
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/lambdaruntime"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// TemplateAge is when a launch template is old: long after its launch, and
// soon enough for a test.
const TemplateAge = 10 * time.Second

// StartJoist starts a process for each service from the folder of binaries. Those outside of the cluster
// are functions under Lambda, or poll their queues.
func (w *World) StartJoist(dir string, lambda bool) {
	w.Helper()
	w.Install()
	for _, service := range inCluster {
		w.processes = append(w.processes, run(w.T, dir, service, w.inClusterEnviron(service)))
	}
	for _, service := range outside {
		if lambda {
			w.startFunction(dir, service)
			continue
		}
		w.processes = append(w.processes, run(w.T, dir, service, w.functionEnviron(service)))
	}
	w.Cleanup(func() {
		if w.Failed() {
			for _, p := range w.processes {
				p.kill()
			}
		}
		for _, p := range w.functions {
			p.kill()
		}
	})
}

// startFunction runs a service as a function, behind its queue.
func (w *World) startFunction(dir, service string) {
	f, m := w.worker(service)
	environ := w.functionEnviron(service)
	w.functionNames = append(w.functionNames, f.FunctionName)
	w.functions = append(w.functions, run(w.T, dir, service, append(environ, w.Server.FunctionRuntime(f.FunctionName)...)))
	q, _ := w.Broker.Lookup(template.Name(m.EventSourceArn))
	mapping := lambdaruntime.Mapping{
		Runtime: w.Server.Lambda, Function: f.FunctionName, Queue: q, Batch: m.BatchSize, Timeout: time.Duration(f.Timeout) * time.Second, Region: Region,
	}
	w.beside.Go(func() { mapping.Run(w.Ctx) })
}

// inClusterEnviron is what the chart gives, on this machine: many services share
// it, so that none has a port of its own.
func (w *World) inClusterEnviron(service string) []string {
	w.Helper()
	return slices.Concat(w.machineEnviron(service), w.podEnviron(service),
		[]string{settings.ClusterUID + "=", settings.MetricsPort + "=0", settings.HealthPort + "=0"})
}

// Crash kills every service at the same moment, and starts each anew.
func (w *World) Crash() {
	for _, list := range [][]*process{w.processes, w.functions} {
		for _, p := range list {
			p.kill()
		}
	}
	for _, name := range w.functionNames {
		w.Server.Lambda.ExitProcess(name)
	}
	for _, list := range [][]*process{w.processes, w.functions} {
		for i, p := range list {
			w.dead, list[i] = append(w.dead, p), p.begin()
		}
	}
	w.Say("kill -9 of every service of Joist, and new ones start")
}

// Account is the user that a service is to Kubernetes.
func Account(service string) string {
	return "system:serviceaccount:" + Namespace + ":joist-" + service
}
