// Command release makes and verifies the artifacts of a release; see deploy/docs/release.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/joist-autoscaler/joist/integration/release"
)

const usage = `usage:
  release artifacts --version v0.1.0 [flags]   make the archives, functions, images and charts
  release verify [flags]                       verify them as an operator does`

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := dispatch(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		cancel()
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	options := release.MakeOptions{Out: os.Stdout}
	var serve bool
	flags := pflag.NewFlagSet("release", pflag.ContinueOnError)
	flags.StringVar(&options.Repository, "repository", ".", "root of the repository")
	flags.StringVar(&options.Into, "into", "dist", "folder of the artifacts")
	flags.StringVar(&options.Version, "version", "", "version of the release: v0.1.0")
	flags.StringVar(&options.Registry, "registry", "127.0.0.1:0", "registry of the images and charts; port 0 starts one")
	flags.StringVar(&options.Key, "key", "", "private key of cosign with an empty password (default: a new one on loopback, else the identity of the workflow)")
	flags.StringSliceVar(&options.Platforms, "platforms", nil, "limit the command and the images to platforms: linux/amd64")
	flags.BoolVar(&options.Publish, "publish", false, "create the draft of the GitHub release, and push outside loopback")
	flags.BoolVar(&serve, "serve", false, "serve the registry that port 0 started until ^C")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, path := range []*string{&options.Repository, &options.Into} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	switch flags.Arg(0) {
	case "artifacts":
		return makeArtifacts(ctx, options, serve)
	case "verify":
		return release.Verify(ctx, options.Repository, options.Into, os.Stdout)
	default:
		return errors.New(usage)
	}
}

func makeArtifacts(ctx context.Context, options release.MakeOptions, serve bool) error {
	if host, folder, _ := strings.Cut(options.Registry, "/"); strings.HasSuffix(host, ":0") {
		address, err := release.StartRegistry(ctx, host)
		if err != nil {
			return err
		}
		options.Registry = strings.TrimSuffix(address+"/"+folder, "/")
	} else {
		serve = false
	}
	made, err := release.Make(ctx, options)
	if err != nil {
		return err
	}
	for _, artifact := range made.Artifacts {
		fmt.Printf("%-10s %s %s\n", artifact.Kind, artifact.Digest, strings.TrimPrefix(artifact.Path+" "+artifact.Reference, " "))
	}
	fmt.Println(filepath.Join(options.Into, "release.json"))
	if serve {
		fmt.Printf("the registry %s is served until ^C\n", made.Registry)
		<-ctx.Done()
	}
	return nil
}
