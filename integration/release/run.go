package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/helm"
	"github.com/joist-autoscaler/joist/integration/environment/tool"
)

// tools are the programs of a release. goreleaser 2.15.4 and later require a module that the
// Go module proxy refuses; 2.18 requires Go 1.27.
var tools = []tool.GoTool{
	{Package: "github.com/goreleaser/goreleaser/v2", Version: "v2.15.1"},
	{Package: "github.com/sigstore/cosign/v3/cmd/cosign", Version: "v3.1.3"},
	{Package: "github.com/anchore/syft/cmd/syft", Version: "v1.57.0"},
	{Package: "github.com/google/ko", Version: "v0.19.1"},
	helm.Tool,
}

// step is a part of a release.
type step struct {
	name string
	do   func(context.Context) error
}

// runSteps runs steps in their order until one fails, and prints how long each took.
func runSteps(ctx context.Context, out io.Writer, steps []step) error {
	began := time.Now()
	for _, s := range steps {
		fmt.Fprintf(out, "--- [%d s] %s\n", int(time.Since(began).Seconds()), s.name)
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("cannot %s: %w", s.name, err)
		}
	}
	fmt.Fprintf(out, "--- [%d s] done\n", int(time.Since(began).Seconds()))
	return nil
}

// buildTools builds the programs, and links them under their names into a folder.
func (w *work) buildTools(ctx context.Context) error {
	bin := w.bin()
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	for _, t := range tools {
		program, err := t.Build(ctx, w.Repository)
		if err != nil {
			return err
		}
		if err := os.Symlink(program, filepath.Join(bin, t.Name())); err != nil {
			return err
		}
		fmt.Fprintf(w.Out, "    %s %s\n", t.Name(), t.Version)
	}
	return nil
}

// bin is the folder of the programs, which comes first in PATH.
func (w *work) bin() string { return filepath.Join(w.scratch, "bin") }

// run runs a program in the repository and returns its standard output. Both outputs are
// printed if it fails.
func (w *work) run(ctx context.Context, environ []string, name string, args ...string) (string, error) {
	fmt.Fprintf(w.Out, "    $ %s %s\n", name, strings.Join(args, " "))
	path := name
	if own := filepath.Join(w.bin(), name); isFile(own) {
		path = own
	}
	command := exec.CommandContext(ctx, path, args...)
	command.Dir = w.Repository
	command.Env = append(os.Environ(), "PATH="+w.bin()+string(os.PathListSeparator)+os.Getenv("PATH"))
	command.Env = append(command.Env, environ...)
	var out, diagnostics bytes.Buffer
	command.Stdout, command.Stderr = &out, &diagnostics
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("running %s %s: %w\n%s%s", name, args[0], err, out.String(), diagnostics.String())
	}
	return out.String(), nil
}

func isFile(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}
