package tool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
)

// firstPort and lastPort limit the ports that FindFreeAddresses returns. Operating systems give higher ports to outgoing
// connections (Linux from 32768, macOS and Windows from 49152), so no connection takes one before the program listens on it.
const firstPort, lastPort = 20000, 32767

// FindFreeAddresses returns n different addresses of loopback on which nothing listens, for programs that take an address
// and not a listener. It draws them at random, so two processes that call it at the same time are unlikely to get the same one.
func FindFreeAddresses(ctx context.Context, n int) ([]netip.AddrPort, error) {
	var found []netip.AddrPort
	for _, i := range rand.Perm(lastPort - firstPort + 1) { //nolint:gosec // no secret
		if len(found) == n {
			return found, nil
		}
		address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(firstPort+i))
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address.String())
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("finding a free port of loopback: %w", err)
		}
		listener.Close()
		found = append(found, address)
	}
	return nil, fmt.Errorf("finding a free port of loopback: fewer than %d of %d to %d are free; end programs that listen there", n, firstPort, lastPort)
}

// FindFreePort returns the port of one such address.
func FindFreePort(ctx context.Context) (int, error) {
	found, err := FindFreeAddresses(ctx, 1)
	if err != nil {
		return 0, err
	}
	return int(found[0].Port()), nil
}
