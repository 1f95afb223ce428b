package controlplane

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// A process is one running program. It ends when this process ends: on Linux the kernel
// kills it when the thread that started it ends, and elsewhere the executable watches its
// standard input, whose other end only this process holds.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd

	done    chan struct{} // closed after the process has exited
	retired chan struct{} // closed when the program may end while the others run
	err     error         // the exit error; read it after done
}

// startProcess returns when the program runs, with its output in the log.
func startProcess(l layout, name string, args []string) (*process, error) {
	log, err := os.Create(l.log(name))
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	defer log.Close()

	cmd := exec.Command(l.program(name), args...)
	cmd.Dir = l.dir
	cmd.Stdout, cmd.Stderr = log, log
	// A separate home: kwok reads ~/.kwok, and the user's files must not matter.
	cmd.Env = []string{"HOME=" + l.dir, "PATH=" + os.Getenv("PATH"), "JOIST_LIFELINE=stdin"}
	ownGroup(cmd)
	dieWithUs(cmd)
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{name: name, log: l.log(name), cmd: cmd, done: make(chan struct{}), retired: make(chan struct{})}
	started := make(chan error)
	go p.run(started, lifeline)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

// run starts the program and waits for its end on one dedicated thread, because the death
// signal is tied to the thread.
func (p *process) run(started chan<- error, lifeline io.Closer) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	_ = lifeline.Close()
	close(p.done)
}

// kill ends the program at once and waits for its exit. SIGTERM would take ten seconds,
// and the data is removed anyway.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails if the program has already exited
	<-p.done
}

// died describes an unexpected exit. Read it after done.
func (p *process) died() error {
	how := "exited with status 0"
	if p.err != nil {
		how = "ended: " + p.err.Error()
	}
	return fmt.Errorf("%s %s\n%s", p.name, how, p.lastWords())
}

// lastWords names the log and shows its end.
func (p *process) lastWords() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Sprintf("its log cannot be read: %v", err)
	}
	return fmt.Sprintf("log %s ends with:\n%s", p.log, tail(content, 2000))
}

// ownGroup puts the program into its own process group, so that a terminal's ^C does not
// reach it first, and so that a command with a context ends together with its child
// processes.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	}
}
