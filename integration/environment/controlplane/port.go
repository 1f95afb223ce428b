package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// A reservation keeps a loopback port for this process. If we closed a free port before
// the server binds it, another process could take it. Instead we keep a socket bound to
// it, without listening, and the server binds the same port with SO_REUSEPORT.
type reservation struct{ fds []int }

func (r *reservation) reserve() (port int, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return 0, fmt.Errorf("reserving a loopback port: %w", err)
	}
	syscall.CloseOnExec(fd)
	r.fds = append(r.fds, fd)
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, fmt.Errorf("reserving a loopback port: %w", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, fmt.Errorf("reserving a loopback port: %w", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("reserving a loopback port: %w", err)
	}
	inet, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		return 0, errors.New("reserving a loopback port: the kernel answered with another address family")
	}
	return inet.Port, nil
}

func (r *reservation) release() {
	for _, fd := range r.fds {
		_ = syscall.Close(fd)
	}
	r.fds = nil
}

// reservePorts reserves the three ports of one control plane until release.
func reservePorts() (ports, *reservation, error) {
	held := new(reservation)
	var p ports
	for _, port := range []*int{&p.apiserver, &p.etcd, &p.etcdPeer} {
		var err error
		if *port, err = held.reserve(); err != nil {
			held.release()
			return ports{}, nil, err
		}
	}
	return p, held, nil
}

// answers reports whether a process accepts connections on a loopback port.
func answers(ctx context.Context, port int) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
