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
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is one service that runs.
type process struct {
	name, log string
	// begin starts another of the same.
	begin   func() *process
	command *exec.Cmd
	// killed says that the last line of the log may be torn.
	killed bool
	// done is closed when it has ended, and err says how.
	done chan struct{}
	err  error
}

// stopMax is how long a service may take to stop when it is asked to.
const stopMax = 15 * time.Second

// run starts a binary with no environment but the given.
func run(t *testing.T, dir, service string, environ []string) *process {
	t.Helper()
	p := &process{
		name: "joist-" + service, log: filepath.Join(t.TempDir(), service+".log"), done: make(chan struct{}),
		begin: func() *process { return run(t, dir, service, environ) },
	}
	out, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	p.command = exec.Command(filepath.Join(dir, p.name)) //nolint:noctx // it is stopped by a signal, as it is where it is deployed
	p.command.Env, p.command.Stdout, p.command.Stderr = environ, out, out
	dieWithUs(p.command)
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
	return p
}

// ended says that the process has ended, and how.
func (p *process) ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended: %s\n%s", p.name, p.command.ProcessState, p.tail())
	default:
		return nil
	}
}

// stop asks the process to stop, and fails when it does not do so in time and
// without complaint.
func (p *process) stop() error {
	if err := p.ended(); err != nil {
		return err
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	select {
	case <-p.done:
	case <-time.After(stopMax):
		p.kill()
		return fmt.Errorf("%s did not stop in %s\n%s", p.name, stopMax, p.tail())
	}
	if p.err != nil {
		return fmt.Errorf("%s stopped badly: %w\n%s", p.name, p.err, p.tail())
	}
	return nil
}

// kill ends the process as a power cut does.
func (p *process) kill() {
	p.killed = true
	// A process that has ended meanwhile is what was wanted.
	_ = p.command.Process.Kill()
	<-p.done
}

const tailLines = 25

// tail is what a person should see of the log: its complaints, and its end.
func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	complaints := p.errors()
	complaints = complaints[:min(len(complaints), tailLines)]
	return fmt.Sprintf("--- %s: %d lines of level ERROR\n%s\n--- the end of its log\n%s",
		p.name, len(complaints), strings.Join(complaints, "\n"), strings.Join(lines, "\n"))
}

// errors are the lines of the log at level ERROR: what a person would be called
// for.
func (p *process) errors() []string {
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
		if err != nil && !p.killed || line.Level == "ERROR" {
			found = append(found, p.name+": "+lines.Text())
		}
	}
	return found
}
