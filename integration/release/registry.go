package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// StartRegistry serves an empty registry on an address of loopback, such as 127.0.0.1:0,
// until the context ends, and returns its address. Its content is in memory.
func StartRegistry(ctx context.Context, address string) (string, error) {
	if !isLoopback(address) {
		return "", fmt.Errorf("the registry has no authentication: %s is not on loopback", address)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return "", fmt.Errorf("starting a registry: %w", err)
	}
	server := &http.Server{
		Handler:           registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))),
		ReadHeaderTimeout: time.Minute,
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Printf("the registry on %s ended: %v", listener.Addr(), err)
		}
	}()
	return listener.Addr().String(), nil
}
