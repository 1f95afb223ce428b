package testbed

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/lambdaruntime"
)

// process is a running service.
type process struct {
	name, log string
	// begin starts another process of the same service.
	begin   func() *process
	command *exec.Cmd
	// emulates is whether the process is AWS's emulator with the service as its child. It writes lines of its own to the log.
	emulates bool
	// killed is whether the last line of the log may be incomplete.
	killed bool
	// done is closed when it has ended, and err says how.
	done chan struct{}
	err  error
}

// stopTimeout is how long a service may take to stop.
const stopTimeout = 15 * time.Second

// startProcess starts the binary of a service with exactly this environment.
func startProcess(t *testing.T, dir, service string, environ []string) *process {
	t.Helper()
	return startProgram(t, dir, "joist-"+service, environ)
}

// startProgram starts a binary with exactly this environment.
func startProgram(t *testing.T, dir, name string, environ []string) *process {
	t.Helper()
	p := &process{name: name, begin: func() *process { return startProgram(t, dir, name, environ) }}
	p.startCommand(t, exec.Command(filepath.Join(dir, name)), environ) //nolint:noctx // it is stopped by a signal, as it is where it is deployed
	return p
}

// startEmulator starts AWS's runtime interface emulator with a service's binary as its function. The function has exactly
// this environment and the emulator's variables.
func startEmulator(t *testing.T, program string, at lambdaruntime.Emulator, binary string, environ []string) *process {
	t.Helper()
	p := &process{
		name: filepath.Base(binary), emulates: true,
		begin: func() *process { return startEmulator(t, program, at, binary, environ) },
	}
	p.startCommand(t, exec.Command(program, at.Args(binary)...), environ) //nolint:noctx // as in startProgram
	return p
}

// startCommand starts the process with exactly this environment.
func (p *process) startCommand(t *testing.T, command *exec.Cmd, environ []string) {
	t.Helper()
	p.log, p.done, p.command = filepath.Join(t.TempDir(), p.name+".log"), make(chan struct{}), command
	out, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	p.command.Env, p.command.Stdout, p.command.Stderr = environ, out, out
	killWithParent(p.command)
	started := make(chan error)
	go func() {
		// The kernel ends the process when the thread that started it ends.
		runtime.LockOSThread()
		defer out.Close()
		err := p.command.Start()
		started <- err
		if err == nil {
			p.err = p.command.Wait()
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		t.Fatalf("starting %s: %v", p.name, err)
	}
}

// exitError returns an error once the process has exited.
func (p *process) exitError() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended: %s\n%s", p.name, p.command.ProcessState, p.lastLines())
	default:
		return nil
	}
}

// stopProcess sends SIGTERM and returns an error if the process does not exit cleanly in time.
func (p *process) stopProcess() error {
	if err := p.exitError(); err != nil {
		return err
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		p.killProcess()
		return fmt.Errorf("%s did not stop in %s\n%s", p.name, stopTimeout, p.lastLines())
	}
	if p.err != nil {
		return fmt.Errorf("%s did not exit cleanly: %w\n%s", p.name, p.err, p.lastLines())
	}
	return nil
}

// killProcess sends SIGKILL.
func (p *process) killProcess() {
	p.killed = true
	if p.emulates {
		killChildren(p.command.Process.Pid)
	}
	// The process may have exited already.
	_ = p.command.Process.Kill()
	<-p.done
}

const tailLines = 25

// lastLines returns the error lines and the end of the log.
func (p *process) lastLines() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	complaints := p.errorLines()
	complaints = complaints[:min(len(complaints), tailLines)]
	return fmt.Sprintf("--- %s: %d lines of level ERROR\n%s\n--- the end of its log\n%s",
		p.name, len(complaints), strings.Join(complaints, "\n"), strings.Join(lines, "\n"))
}

// errorLines returns the log lines of level ERROR.
func (p *process) errorLines() []string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Level string }
		err := json.Unmarshal(lines.Bytes(), &line)
		if err != nil && !p.killed && !p.emulates || line.Level == "ERROR" {
			found = append(found, p.name+": "+lines.Text())
		}
	}
	return found
}

// ServiceLogs returns the files of the logs of all processes, also of ended ones.
func (w *TestBed) ServiceLogs() []string {
	var files []string
	for _, p := range slices.Concat(w.stoppedProcesses, w.processes, w.functions) {
		files = append(files, p.log)
	}
	return files
}
