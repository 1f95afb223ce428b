package lambdaruntime

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/tool"
)

// EmulatorTool is AWS's runtime interface emulator, the program that has the Runtime API in AWS's base images.
var EmulatorTool = tool.GoTool{
	Package: "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie", Version: "v0.0.0-20261030222936-bef5c4ba774d",
}

// Emulator invokes one function behind a runtime interface emulator, which answers one invocation at a time.
type Emulator struct {
	// Address is the emulator's address for invocations, such as 127.0.0.1:8080.
	Address string
	// RuntimeAPI is the address of its Runtime API, which the function calls.
	RuntimeAPI string
}

// NewEmulator returns an emulator at free addresses of loopback.
func NewEmulator(ctx context.Context) (Emulator, error) {
	found, err := tool.FindFreeAddresses(ctx, 2)
	if err != nil {
		return Emulator{}, fmt.Errorf("preparing the runtime interface emulator: %w", err)
	}
	return Emulator{Address: found[0].String(), RuntimeAPI: found[1].String()}, nil
}

// Args returns the arguments of the emulator's program for a function's command.
func (e Emulator) Args(command ...string) []string {
	return append([]string{"--log-level", "error", "--runtime-interface-emulator-address", e.Address, "--runtime-api-address", e.RuntimeAPI}, command...)
}

// Invoke sends an event to the function and waits up to timeout for the response. It returns errors that the function reported.
func (e Emulator) Invoke(ctx context.Context, function string, payload []byte, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	url := "http://" + e.Address + "/2015-03-31/functions/function/invocations"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(payload))
	if err != nil {
		return nil, fmt.Errorf("invoking %s: %w", function, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("invoking %s: %w", function, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("invoking %s: %w", function, err)
	}
	// The emulator answers errors of the function with status 200, and its timeout with a sentence.
	var report struct{ ErrorType, ErrorMessage string }
	invalid := len(body) > 0 && json.Unmarshal(body, &report) != nil
	if invalid || response.StatusCode != http.StatusOK || report.ErrorType != "" {
		return nil, fmt.Errorf("function %s failed: %s: %s", function, response.Status, strings.TrimSpace(string(body)))
	}
	return body, nil
}
