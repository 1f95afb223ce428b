package tool

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// FindFreeAddresses returns n different addresses of loopback on which nothing listens, for programs that take an address
// and not a listener. Another process may take one of them before the program listens.
func FindFreeAddresses(ctx context.Context, n int) ([]netip.AddrPort, error) {
	var found []netip.AddrPort
	for range n {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port of loopback: %w", err)
		}
		defer listener.Close() // Only after the others are found, so that they differ.
		found = append(found, listener.Addr().(*net.TCPAddr).AddrPort())
	}
	return found, nil
}

// FindFreePort returns the port of one such address.
func FindFreePort(ctx context.Context) (int, error) {
	found, err := FindFreeAddresses(ctx, 1)
	if err != nil {
		return 0, err
	}
	return int(found[0].Port()), nil
}
