package memcloud

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"time"
)

// Randomness is a hash and not a stream of random numbers: one result does not depend on how many others were drawn
// before it.

// draw returns 64 random bits for a decision.
func (c *Cloud) draw(about ...string) uint64 {
	h := fnv.New64a()
	var seed [8]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(c.options.Seed))
	_, _ = h.Write(seed[:])
	for _, s := range about {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0})
	}
	return mix(h.Sum64())
}

// mix spreads FNV's weak high bits (the finalizer of MurmurHash3).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// share returns a random number in [0, 1).
func (c *Cloud) share(about ...string) float64 {
	return float64(c.draw(about...)>>11) / (1 << 53)
}

// upTo returns a random duration in [0, most), in whole milliseconds.
func (c *Cloud) upTo(most time.Duration, about ...string) time.Duration {
	if most < time.Millisecond {
		return 0
	}
	return time.Duration(c.draw(about...)%uint64(most/time.Millisecond)) * time.Millisecond
}

// drawLag returns how long a change stays invisible to Describe.
func (c *Cloud) drawLag(about ...string) time.Duration {
	if c.countFault("long-lag", c.share(append([]string{"long lag"}, about...)...) < c.faults.LongLag) {
		return c.upTo(MaxLag, about...)
	}
	lag := c.upTo(c.faults.Lag, about...)
	c.countFault("lag", lag > 0)
	return lag
}

// drawBoot returns the time from pending to running.
func (c *Cloud) drawBoot(id string) time.Duration {
	wait := c.options.Boot/2 + c.upTo(c.options.Boot, "boot", id)
	if c.countFault("slow-boot", c.share("slow boot", id) < c.faults.SlowBoot) {
		wait += c.upTo(maxSlowBoot, "length of slow boot", id)
	}
	return wait
}

// countFault counts a random fault if it happens, and returns happens.
func (c *Cloud) countFault(kind string, happens bool) bool {
	if happens {
		c.injected[kind]++
	}
	return happens
}

// InjectedFaults returns how often each random fault has happened.
func (c *Cloud) InjectedFaults() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.injected)
}

// serial returns the next serial number of a kind.
func (c *Cloud) serial(kind string) string {
	c.serials[kind]++
	return strconv.FormatUint(c.serials[kind], 10)
}

// identify returns the next id of a kind: a prefix and 17 hexadecimal digits.
func (c *Cloud) identify(prefix string) string {
	n := c.serial(prefix)
	return fmt.Sprintf("%s-0%016x", prefix, c.draw("id", prefix, n))
}

// uuid returns the next id of a kind in the format of a UUID.
func (c *Cloud) uuid(kind string) string {
	n := c.serial(kind)
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], c.draw("uuid", kind, n))
	binary.BigEndian.PutUint64(b[8:], c.draw("diuu", kind, n))
	s := hex.EncodeToString(b[:])
	return fmt.Sprintf("%s-%s-%s-%s-%s", s[:8], s[8:12], s[12:16], s[16:20], s[20:])
}
