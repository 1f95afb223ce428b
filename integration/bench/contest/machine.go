package contest

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// Machine is where the processes run.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	OS    string `json:"os"`
	// Load is the load average of the last minute, 0 where the system does not
	// say. Other work makes wall times longer, and CPU times a little.
	Load float64 `json:"load"`
}

// ThisMachine describes it as far as the system tells.
func ThisMachine() Machine {
	return Machine{CPU: processor(), Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Load: load()}
}

// processor is the model's name: from Linux' file, or from what macOS answers.
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

// Commit is the repository's, with a plus sign when files have been changed.
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
