package contest

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// Machine describes the machine of the contest.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	OS    string `json:"os"`
	// Load is the load average of the last minute, 0 if the system does not report it.
	// Other work increases wall times, and CPU times slightly.
	Load float64 `json:"load"`
}

// ThisMachine returns the properties that the system reports.
func ThisMachine() Machine {
	return Machine{CPU: processor(), Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Load: load()}
}

// processor returns the model's name, from Linux's file or macOS's sysctl.
func processor() string {
	if file, err := os.Open("/proc/cpuinfo"); err == nil {
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if key, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(key) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	if name, err := exec.Command("sysctl", "-n", "machdep.cpu.brand_string").Output(); err == nil {
		return strings.TrimSpace(string(name))
	}
	return "a processor of unknown model"
}

func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	value, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return value
}

// Commit returns the repository's commit, with a plus sign if files were changed.
func Commit() string {
	id, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	changed, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output()
	mark := ""
	if err != nil || len(changed) > 0 {
		mark = "+"
	}
	return strings.TrimSpace(string(id)) + mark
}
