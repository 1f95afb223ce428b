package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Options configure a control plane. The zero value is a cluster with RBAC and kwok, and
// only Kubernetes's built-in types.
type Options struct {
	// CRDs is a folder of CustomResourceDefinitions in YAML. Start returns when
	// the API server serves all of them.
	CRDs string

	// NoKwok disables kwok: nodes get no conditions and pods never run, unless the test
	// sets their status.
	NoKwok bool

	// NoRBAC permits everything to everyone. With RBAC, Config and Kubeconfig have all
	// permissions, and KubeconfigAs has another user's.
	NoRBAC bool

	// Audit logs every request, for Calls.
	Audit bool

	// Logs is a folder for the programs' logs, which is always kept. Without it the logs
	// are in a temporary folder, which is kept if a program failed.
	Logs string

	// Progress receives the progress of compiling the programs, which takes minutes if no
	// build is cached. The default is standard error.
	Progress io.Writer
}

// A ControlPlane runs until Stop.
type ControlPlane struct {
	// Config has all permissions. Copy it before changing it.
	Config *rest.Config
	// Kubeconfig is a file with the same permissions, for KUBECONFIG.
	Kubeconfig string
	// Logs is the folder of the programs' logs.
	Logs string

	layout    layout
	scratch   *scratch
	ports     *reservation
	processes []*process
	keepLogs  bool

	shutDown func() error
	stopping chan struct{}
	watchers sync.WaitGroup
	died     chan struct{}
	mu       sync.Mutex
	deaths   []error
}

// Start runs a control plane and returns when pods can be created in its default
// namespace: about four seconds after the programs are built. ctx bounds only the start;
// the programs run until Stop.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	progress := options.Progress
	if progress == nil {
		progress = os.Stderr
	}
	assets, err := Build(ctx, progress)
	if err != nil {
		return nil, err
	}
	if err := checkAssets(assets, needed(options.NoKwok)); err != nil {
		return nil, err
	}
	cp := &ControlPlane{stopping: make(chan struct{}), died: make(chan struct{})}
	cp.shutDown = sync.OnceValue(cp.tearDown)
	if err := cp.start(ctx, assets, options); err != nil {
		cp.keepLogs = cp.keepLogs || len(cp.processes) > 0
		return nil, errors.Join(fmt.Errorf("starting a control plane: %w", err), cp.shutDown())
	}
	return cp, nil
}

func (cp *ControlPlane) start(ctx context.Context, assets string, options Options) (err error) {
	if err := cp.prepare(ctx, assets, options); err != nil {
		return err
	}
	// If a program exits, the start fails at once instead of waiting for it.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-cp.died:
			cancel(cp.Err())
		case <-ctx.Done():
		}
	}()
	if err := cp.startServers(ctx); err != nil {
		return err
	}
	if err := cp.startClients(options.NoKwok); err != nil {
		return err
	}
	if options.CRDs != "" {
		if err := applyCRDs(ctx, cp.Config, options.CRDs); err != nil {
			return err
		}
	}
	return cp.explain(awaitServiceAccount(ctx, cp.Config), controllerManager)
}

// prepare creates folders, ports, keys and kubeconfig.
func (cp *ControlPlane) prepare(ctx context.Context, assets string, options Options) error {
	logs, err := logFolder(options.Logs)
	if err != nil {
		return err
	}
	cp.Logs, cp.keepLogs = logs, options.Logs != ""
	if cp.scratch, err = newScratch(ctx, scratchBase("/dev/shm")); err != nil {
		return err
	}
	cp.layout = layout{assets: assets, dir: cp.scratch.dir, logs: logs, noRBAC: options.NoRBAC, audit: options.Audit}
	if cp.layout.ports, cp.ports, err = reservePorts(); err != nil {
		return err
	}
	s, err := writeSecrets(cp.layout)
	if err != nil {
		return err
	}
	if err := os.WriteFile(cp.layout.auditPolicy(), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	cp.Config = restConfig(cp.layout.serverURL(), s)
	cp.Kubeconfig = cp.layout.kubeconfig()
	return writeKubeconfig(cp.Kubeconfig, cp.Config, "")
}

// logFolder returns an absolute path, because the programs run in another folder.
func logFolder(wanted string) (string, error) {
	if wanted == "" {
		dir, err := os.MkdirTemp("", "joist-controlplane-logs-")
		if err != nil {
			return "", fmt.Errorf("creating a folder for logs: %w", err)
		}
		return dir, nil
	}
	dir, err := filepath.Abs(wanted)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("creating a folder for logs: %w", err)
	}
	return dir, nil
}

// startServers starts etcd and then the API server. An API server that starts without
// etcd waits for a second before it retries.
func (cp *ControlPlane) startServers(ctx context.Context) error {
	if err := cp.run(etcd, cp.layout.etcdArgs()); err != nil {
		return err
	}
	if err := cp.explain(awaitEtcd(ctx, cp.layout.ports.etcd), etcd); err != nil {
		return err
	}
	if err := cp.run(apiserver, cp.layout.apiserverArgs()); err != nil {
		return err
	}
	return cp.explain(awaitReady(ctx, cp.Config), apiserver)
}

func (cp *ControlPlane) startClients(noKwok bool) error {
	if err := cp.run(controllerManager, cp.layout.controllerManagerArgs()); err != nil {
		return err
	}
	if err := cp.run(scheduler, cp.layout.schedulerArgs()); err != nil {
		return err
	}
	if noKwok {
		return nil
	}
	return cp.run(kwok, cp.layout.kwokArgs())
}

// run starts one program and watches it until Stop.
func (cp *ControlPlane) run(name string, args []string) error {
	p, err := startProcess(cp.layout, name, args)
	if err != nil {
		return err
	}
	cp.processes = append(cp.processes, p)
	cp.watchers.Go(func() {
		<-p.done
		select {
		case <-cp.stopping:
		case <-p.retired:
		default:
			cp.recordDeath(p.died())
		}
	})
	return nil
}

func (cp *ControlPlane) recordDeath(death error) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	cp.deaths = append(cp.deaths, death)
	if len(cp.deaths) == 1 {
		close(cp.died)
	}
}

// explain adds the awaited program's log to the error, unless the wait ended because a
// program exited, whose log the error already has.
func (cp *ControlPlane) explain(err error, name string) error {
	if err == nil || cp.Err() != nil {
		return err
	}
	for _, p := range cp.processes {
		if p.name == name {
			return fmt.Errorf("%w\n%s", err, p.lastWords())
		}
	}
	return err
}

// Died is closed when a program exits before Stop: tests that wait for the cluster should
// also wait for this.
func (cp *ControlPlane) Died() <-chan struct{} { return cp.died }

// Err returns an error with the programs that exited before Stop, and the ends of their
// logs.
func (cp *ControlPlane) Err() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	return errors.Join(cp.deaths...)
}

// KubeconfigAs writes a kubeconfig with the permissions of another user, such as
// system:serviceaccount:joist:watcher, and returns its path. Stop removes it.
func (cp *ControlPlane) KubeconfigAs(user string) (string, error) {
	name := strings.NewReplacer(":", "-", "/", "-").Replace(user) + ".kubeconfig"
	path := cp.layout.path(name)
	return path, writeKubeconfig(path, cp.Config, user)
}

// Stop ends the programs and removes their data. It returns an error if a program had
// exited before, so that no test passes on half a cluster. Further calls return the same
// result.
func (cp *ControlPlane) Stop() error {
	return errors.Join(cp.Err(), cp.shutDown())
}

func (cp *ControlPlane) tearDown() error {
	close(cp.stopping)
	// Clients end first: without the server they would flood their logs.
	for _, p := range slices.Backward(cp.processes) {
		p.kill()
	}
	cp.watchers.Wait()
	if cp.ports != nil {
		cp.ports.release()
	}
	var removals []error
	if cp.scratch != nil {
		removals = append(removals, cp.scratch.remove())
	}
	if !cp.keepLogs && cp.Err() == nil && cp.Logs != "" {
		removals = append(removals, os.RemoveAll(cp.Logs))
	}
	return errors.Join(removals...)
}
