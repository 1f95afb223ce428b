package e2e

import (
	"os"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/integration/fakeaws"
	"github.com/joist-autoscaler/joist/integration/fakeaws/lambdaruntime"
	"github.com/joist-autoscaler/joist/shared/settings"
)

const (
	// templateAge is when a launch template is old: long after its launch, and
	// soon enough for a test.
	templateAge = 10 * time.Second
	// functionTimeout is that of every function.
	functionTimeout = 10 * time.Second
)

// startJoist starts a process for each service from the folder of binaries. Those outside of the cluster
// are functions under Lambda, or poll their queues.
func (w *world) startJoist(dir string, lambda bool) {
	w.Helper()
	for _, file := range []string{"watcher", "lifecycle", "karpenter-lease"} {
		w.apply(root+"/deploy/rbac/"+file+".yaml", nil)
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
func (w *world) startFunction(dir, service string) {
	name := "joist-" + service
	// Its own queue it learns from the records, as there.
	environ := append(w.environ(service), w.server.FunctionEnviron(name)...)
	w.functions = append(w.functions, run(w.T, dir, service, append(environ, settings.Region+"="+region)))
	q, _ := w.broker.Lookup(queueName(service))
	mapping := lambdaruntime.Mapping{Runtime: w.server.Lambda, Function: name, Queue: q, Timeout: functionTimeout}
	w.beside.Go(func() { mapping.Run(w.ctx) })
}

func (w *world) url(service string) string { return w.server.QueueURL(queueName(service)) }

// environ is the whole environment of a service: nothing of this machine's own
// leaks in.
func (w *world) environ(service string) []string {
	return slices.Concat(w.server.Environ(), []string{
		"HOME=" + w.TempDir(), "TMPDIR=" + os.TempDir(),
		"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		settings.Region + "=" + region,
		settings.ClusterName + "=" + w.id.Name, settings.ClusterUID + "=" + w.id.UID,
		settings.Bucket + "=" + fakeaws.Bucket, settings.Prefix + "=" + clusterName, settings.Bus + "=" + bus,
		settings.DeadLetterURL + "=" + w.url(service+"-dead"),
		settings.TemplateAge + "=" + templateAge.String(),
		settings.MetricsPort + "=0", settings.HealthPort + "=0",
	})
}

// inClusterEnviron acts with the rights of the service's own service account.
func (w *world) inClusterEnviron(service string) []string {
	w.Helper()
	kubeconfig, err := w.plane.KubeconfigAs(account(service))
	w.check(err)
	return append(w.environ(service),
		settings.Kubeconfig+"="+kubeconfig, settings.Namespace+"="+namespace, settings.Holder+"=joist-"+service+"-0",
		settings.QueueURL+"="+w.url(service), settings.PlannerURL+"="+w.url("planner"), settings.DisruptionURL+"="+w.url("disruption"),
		settings.CatalogURL+"="+w.url("catalog"), settings.LauncherURL+"="+w.url("launcher"))
}

// crash kills every service at the same moment, and starts each anew.
func (w *world) crash() {
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
	w.say("kill -9 of every service of Joist, and new ones start")
}
