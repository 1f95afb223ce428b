package testbed

// RunningServices returns the names of the services that were started as processes, such as joist-planner.
func (w *TestBed) RunningServices() []string {
	names := make([]string, len(w.processes))
	for i, p := range w.processes {
		names[i] = p.name
	}
	return names
}

// RestartService ends a service with SIGKILL and starts it again.
func (w *TestBed) RestartService(name string) {
	w.Helper()
	for i, p := range w.processes {
		if p.name == name {
			p.killProcess()
			w.startAgain(i)
			return
		}
	}
	w.Fatalf("no service %s runs", name)
}

// RestartReplica ends the process with a name of ReplicaName with SIGKILL, calls down, and starts the process again.
func (w *TestBed) RestartReplica(name string, down func()) {
	w.Helper()
	at := 0
	for _, service := range inCluster {
		for replica := range max(1, w.options.Replicas) {
			if name == ReplicaName(service, replica) {
				w.Logf("kill -9 of %s", name)
				w.processes[at].killProcess()
				down()
				w.startAgain(at)
				w.Logf("%s starts again", name)
				return
			}
			at++
		}
	}
	w.Fatalf("unknown replica %q", name)
}

// StartEnded starts every service again that has ended by itself, as a kubelet does, and returns how each ended.
func (w *TestBed) StartEnded() []string {
	w.Helper()
	var ended []string
	for i, p := range w.processes {
		if err := p.exitError(); err != nil {
			ended = append(ended, err.Error())
			w.startAgain(i)
		}
	}
	return ended
}

// startAgain starts a service whose process has ended, and keeps the log of that process.
func (w *TestBed) startAgain(at int) {
	w.Helper()
	ended := w.processes[at]
	w.stoppedProcesses, w.processes[at] = append(w.stoppedProcesses, ended), ended.begin()
}
