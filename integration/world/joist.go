package world

import (
	"os"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/integration/fakeaws"
	"github.com/joist-autoscaler/joist/integration/fakeaws/lambdaruntime"
	"github.com/joist-autoscaler/joist/shared/settings"
)

const (
	// TemplateAge is when a launch template is old: long after its launch, and
	// soon enough for a test.
	TemplateAge = 10 * time.Second
	// functionTimeout is that of every function.
	functionTimeout = 10 * time.Second
)

// StartJoist starts a process for each service from the folder of binaries. Those outside of the cluster
// are functions under Lambda, or poll their queues.
func (w *World) StartJoist(dir string, lambda bool) {
	w.Helper()
	for _, file := range []string{"watcher", "lifecycle", "karpenter-lease"} {
		w.Apply(Root+"/deploy/rbac/"+file+".yaml", nil)
	}
	for _, service := range inCluster {
		w.processes = append(w.processes, run(w.T, dir, service, w.inClusterEnviron(service)))
	}
	for _, service := range outside {
		if lambda {
			w.startFunction(dir, service)
			continue
		}
		environ := append(w.environ(service), settings.QueueURL+"="+w.url(service))
		w.processes = append(w.processes, run(w.T, dir, service, environ))
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
	name := "joist-" + service
	// Its own queue it learns from the records, as there.
	environ := append(w.environ(service), w.Server.FunctionEnviron(name)...)
	w.functions = append(w.functions, run(w.T, dir, service, append(environ, settings.Region+"="+Region)))
	q, _ := w.Broker.Lookup(queueName(service))
	mapping := lambdaruntime.Mapping{Runtime: w.Server.Lambda, Function: name, Queue: q, Timeout: functionTimeout}
	w.beside.Go(func() { mapping.Run(w.Ctx) })
}

func (w *World) url(service string) string { return w.Server.QueueURL(queueName(service)) }

// environ is the whole environment of a service: nothing of this machine's own
// leaks in.
func (w *World) environ(service string) []string {
	return slices.Concat(w.Server.Environ(), []string{
		"HOME=" + w.TempDir(), "TMPDIR=" + os.TempDir(),
		"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		settings.Region + "=" + Region,
		settings.ClusterName + "=" + w.ID.Name, settings.ClusterUID + "=" + w.ID.UID,
		settings.Bucket + "=" + fakeaws.Bucket, settings.Prefix + "=" + ClusterName, settings.Bus + "=" + bus,
		settings.DeadLetterURL + "=" + w.url(service+"-dead"),
		settings.TemplateAge + "=" + TemplateAge.String(),
		settings.MetricsPort + "=0", settings.HealthPort + "=0",
	})
}

// inClusterEnviron acts with the rights of the service's own service account.
func (w *World) inClusterEnviron(service string) []string {
	w.Helper()
	kubeconfig, err := w.Plane.KubeconfigAs(Account(service))
	w.Check(err)
	return append(w.environ(service),
		settings.Kubeconfig+"="+kubeconfig, settings.Namespace+"="+Namespace, settings.Holder+"=joist-"+service+"-0",
		settings.QueueURL+"="+w.url(service), settings.PlannerURL+"="+w.url("planner"), settings.DisruptionURL+"="+w.url("disruption"),
		settings.CatalogURL+"="+w.url("catalog"), settings.LauncherURL+"="+w.url("launcher"))
}

// Crash kills every service at the same moment, and starts each anew.
func (w *World) Crash() {
	for _, list := range [][]*process{w.processes, w.functions} {
		for _, p := range list {
			p.kill()
		}
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
