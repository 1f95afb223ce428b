package peers

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/tool"
)

// patience is the time limit of a peer's first response; the Java and Python ones need 5
// s on an idle machine.
const patience = 2 * time.Minute

// peers skips the test unless it runs in the child process of `make peers`.
func peers(t *testing.T) installed {
	t.Helper()
	if os.Getenv(judgedEnv) == "" {
		t.Skip("peers run by `make peers`, which needs Java, Maven, Python and Node")
	}
	_, at, err := locate()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// freePort returns an unused loopback port.
func freePort(t *testing.T) string {
	t.Helper()
	port, err := tool.FindFreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// serve runs a server until the test ends, and waits until url answers.
func serve(t *testing.T, url, program string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		ended <- <-ended
		log.Close()
	})
	if err := answers(url, ended); err != nil {
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("starting %s: %v; it printed:\n%s", program, err, text)
	}
}

// answers waits until the URL responds.
func answers(url string, ended chan error) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for {
		select {
		case err := <-ended:
			ended <- err
			return errors.Join(errors.New("the process has ended"), err)
		case <-late:
			return errors.New("the process does not answer")
		case <-tick.C:
			if response, err := http.Get(url); err == nil {
				return response.Body.Close()
			}
		}
	}
}
