package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// Build returns a folder with the control plane's programs. It compiles them if no
// earlier call has, which takes minutes (see README.md) and writes to progress; finding
// the cached folder takes milliseconds and writes nothing. Concurrent processes wait for
// the one that compiles.
//
// The cache is joist/controlplane in the user's cache folder, or controlplane in
// $JOIST_CACHE. If KUBEBUILDER_ASSETS is set, Build returns its folder and compiles
// nothing.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir, checkAssets(dir, needed(true))
	}
	cache, err := cacheDir(os.Getenv("JOIST_CACHE"), os.UserCacheDir)
	if err != nil {
		return "", err
	}
	b, err := newBuild(cache)
	if err != nil {
		return "", err
	}
	return b.dir, b.ensure(ctx, progress)
}

func cacheDir(override string, userCache func() (string, error)) (string, error) {
	if override != "" {
		return filepath.Join(override, "controlplane"), nil
	}
	base, err := userCache()
	if err != nil {
		return "", fmt.Errorf("finding a folder for the control plane's binary: %w: set JOIST_CACHE to a persistent folder", err)
	}
	return filepath.Join(base, "joist", "controlplane"), nil
}

// A build is one version of the executable and its place in the cache.
type build struct {
	source string   // the nested module
	flags  []string // of go build
	dir    string   // exists only if complete
}

func newBuild(cache string) (build, error) {
	workDir, err := os.Getwd()
	if err != nil {
		return build{}, fmt.Errorf("finding the control plane's sources: %w", err)
	}
	source, err := findSource(workDir)
	if err != nil {
		return build{}, err
	}
	goMod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return build{}, fmt.Errorf("reading the control plane's go.mod: %w", err)
	}
	flags, err := buildFlags(goMod)
	if err != nil {
		return build{}, err
	}
	key, err := cacheKey(os.DirFS(source), runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH, flags)
	if err != nil {
		return build{}, err
	}
	return build{source: source, flags: flags, dir: filepath.Join(cache, key)}, nil
}

func (b build) complete() bool {
	info, err := os.Stat(b.dir)
	return err == nil && info.IsDir()
}

// ensure compiles at most once per machine: it checks the cache, takes the lock, and
// checks again, because the previous holder may have compiled the same build.
func (b build) ensure(ctx context.Context, progress io.Writer) error {
	if b.complete() {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(b.dir), 0o755); err != nil {
		return fmt.Errorf("creating the control plane's cache: %w", err)
	}
	defer report(progress, "control plane: still building or waiting for another process that builds")()
	lock, err := lockFile(ctx, b.dir+".lock")
	if err != nil {
		return fmt.Errorf("waiting for another build of the control plane: %w", err)
	}
	defer lock.unlock()
	if b.complete() {
		return nil
	}
	return b.make(ctx, progress)
}

// make fills a temporary folder and renames it, so that an interrupted build leaves no
// folder that looks complete.
func (b build) make(ctx context.Context, progress io.Writer) error {
	began := time.Now()
	fmt.Fprintf(progress, "control plane: building etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok into %s (once; about 5 minutes on 2 cores)\n", b.dir)
	temp := b.dir + ".partial"
	if err := os.RemoveAll(temp); err != nil {
		return fmt.Errorf("removing the files of an earlier build: %w", err)
	}
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return fmt.Errorf("creating the control plane's folder: %w", err)
	}
	if err := b.compile(ctx, filepath.Join(temp, executable)); err != nil {
		return err
	}
	if err := furnish(ctx, temp); err != nil {
		return err
	}
	if err := os.Rename(temp, b.dir); err != nil {
		return fmt.Errorf("moving the control plane to its folder: %w", err)
	}
	fmt.Fprintf(progress, "control plane: built in %s\n", time.Since(began).Round(time.Second))
	return nil
}

func (b build) compile(ctx context.Context, output string) error {
	args := append([]string{"build", "-o", output}, b.flags...)
	name, args := politely("go", append(args, "."))
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = b.source
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	ownGroup(cmd) // the compiler's child processes must end with it
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("compiling the control plane in %s: %w\n%s", b.source, err, tail(out, 4000))
	}
	return nil
}

// politely lowers the priority of a long command if the system supports it.
func politely(name string, args []string) (string, []string) {
	nice, err := exec.LookPath("nice")
	if err != nil {
		return name, args
	}
	return nice, append([]string{"-n", "10", name}, args...)
}

// furnish creates the executable's symlinks and writes its stages to a file.
func furnish(ctx context.Context, dir string) error {
	const stagesProgram = "kwok-stages"
	for _, name := range append(programs(), stagesProgram) {
		if err := os.Symlink(executable, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("linking the control plane's programs: %w", err)
		}
	}
	stages, err := exec.CommandContext(ctx, filepath.Join(dir, stagesProgram)).Output()
	if err != nil {
		return fmt.Errorf("printing kwok's stages: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, kwokStages), stages, 0o644); err != nil {
		return fmt.Errorf("writing kwok's stages: %w", err)
	}
	return nil
}

// report writes a line with the elapsed time every 15 s until stop is called.
func report(progress io.Writer, what string) (stop func()) {
	began, quit, done := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(15 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				fmt.Fprintf(progress, "%s, %s so far\n", what, now.Sub(began).Round(time.Second))
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// tail returns the last bytes of an output, starting at a line.
func tail(output []byte, size int) []byte {
	if len(output) <= size {
		return output
	}
	output = output[len(output)-size:]
	if _, rest, found := bytes.Cut(output, []byte("\n")); found {
		return rest
	}
	return output
}
