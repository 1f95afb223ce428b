package peers

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
)

const (
	// wantedEnv enables the peers; `make peers` sets it.
	wantedEnv = "JOIST_PEERS"
	// judgedEnv is set in the child process that runs the suites; it has the address at
	// which the parent listens.
	judgedEnv = "JOIST_PEERS_JUDGED"
)

// TestMain runs the suites in a child process and compares its results with the table of
// differences, because a suite fails its test if a peer differs, and a failed test cannot
// become a success.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(wantedEnv) == "" || os.Getenv(judgedEnv) != "" {
		if address := os.Getenv(judgedEnv); address != "" {
			endWith(address)
		}
		_, _ = flag.Set("rapid.checks", "600"), flag.Set("rapid.nofailfile", "true")
		os.Exit(m.Run())
	}
	if err := judge(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// endWith ends this process group when the process that listens at the address ends for
// any reason: killed, interrupted or timed out.
func endWith(address string) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		_, _ = connection.Read(make([]byte, 1))
		endOwnGroup()
	}()
}

// judge installs the peers, runs the suites and prints the comparison.
func judge() error {
	if err := missing(); err != nil {
		return err
	}
	if err := install(); err != nil {
		return err
	}
	selected := flag.Lookup("test.run").Value.String()
	results, err := judged(selected)
	if err != nil {
		return err
	}
	return compare(results, differences).print(os.Stdout, selected != "")
}

// judged runs this binary again and reads its test events. Failed tests are not an error.
func judged(selected string) ([]result, error) {
	if selected == "" {
		selected = allPeers()
	}
	alive, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer alive.Close()
	cmd := exec.Command("go", "tool", "test2json", "-t", os.Args[0], "-test.v=test2json", "-test.run="+selected,
		"-test.timeout="+flag.Lookup("test.timeout").Value.String())
	cmd.Env = append(os.Environ(), judgedEnv+"="+alive.Addr().String())
	cmd.Stderr = os.Stderr
	group(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("running the suites: %w", err)
	}
	defer end(cmd)
	results, err := read(out, os.Stdout)
	_ = cmd.Wait()
	return results, err
}
