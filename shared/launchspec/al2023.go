package launchspec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// How AL2023 finds what to do: parts of a multipart document, by media type.
const (
	nodeConfigVersion = "node.eks.aws/v1alpha1"
	nodeConfigMedia   = "application/node.eks.aws"
	scriptMedia       = `text/x-shellscript; charset="us-ascii"`
)

// nodeConfig is the document of nodeadm, the agent that joins AL2023 machines.
type nodeConfig struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Spec       nodeConfigSpec `json:"spec"`
}

type nodeConfigSpec struct {
	Cluster  nodeCluster   `json:"cluster"`
	Kubelet  nodeKubelet   `json:"kubelet"`
	Instance *nodeInstance `json:"instance,omitempty"`
}

type nodeCluster struct {
	Name      string `json:"name"`
	Endpoint  string `json:"apiServerEndpoint"`
	Authority string `json:"certificateAuthority"`
	CIDR      string `json:"cidr"`
}

type nodeKubelet struct {
	Config map[string]any `json:"config"`
	Flags  []string       `json:"flags"`
}

type nodeInstance struct {
	LocalStorage struct {
		Strategy string `json:"strategy"`
	} `json:"localStorage"`
}

// al2023 writes the user's parts first and ours last, because later NodeConfigs
// win where both speak (B199).
func (b boot) al2023() (string, error) {
	config, err := b.nodeConfig()
	if err != nil {
		return "", err
	}
	parts, err := userParts(b.custom)
	if err != nil {
		return "", fault.E("reading the class's userData", fault.Invalid, err).
			WithHint("AL2023 takes a shell script, a NodeConfig, or a MIME multipart document of both")
	}
	return writeParts(append(parts, part{textproto.MIMEHeader{"Content-Type": {nodeConfigMedia}}, config}))
}

func (b boot) nodeConfig() (string, error) {
	c := b.cluster
	if c.Name == "" || c.Endpoint == "" || c.CABundle == "" || c.ServiceCIDR == "" {
		return "", fault.F("writing user data", fault.Invalid,
			"the catalogue does not say how nodes join the cluster (name, endpoint, certificate authority and service CIDR)").
			WithHint("let the catalog service call eks:DescribeCluster")
	}
	config := nodeConfig{APIVersion: nodeConfigVersion, Kind: "NodeConfig"}
	config.Spec.Cluster = nodeCluster{Name: c.Name, Endpoint: c.Endpoint, Authority: c.CABundle, CIDR: c.ServiceCIDR}
	settings, err := b.kubeletConfig()
	if err != nil {
		return "", err
	}
	config.Spec.Kubelet.Config = settings
	if labels := nodeLabels(b.labels); labels != "" {
		config.Spec.Kubelet.Flags = append(config.Spec.Kubelet.Flags, "--node-labels="+labels)
	}
	config.Spec.Kubelet.Flags = append(config.Spec.Kubelet.Flags, "--register-with-taints="+taintFlag(b.taints))
	if b.instanceStore == karpenter.InstanceStorePolicyRAID0 {
		config.Spec.Instance = &nodeInstance{}
		config.Spec.Instance.LocalStorage.Strategy = "RAID0"
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return "", fault.E("writing user data", fault.Bug, err)
	}
	return string(text), nil
}

// kubeletConfig hands the class's settings on under the names that they have
// there too, with the number of pods that the plan counted on.
func (b boot) kubeletConfig() (map[string]any, error) {
	out := map[string]any{}
	if b.kubelet != nil {
		text, err := json.Marshal(b.kubelet)
		if err == nil {
			err = json.Unmarshal(text, &out)
		}
		if err != nil {
			return nil, fault.E("writing the kubelet's settings", fault.Bug, err)
		}
	}
	// The number is the smaller of both already.
	delete(out, "podsPerCore")
	out["maxPods"] = b.maxPods
	return out, nil
}

// part is one part of a multipart document.
type part struct {
	header textproto.MIMEHeader
	body   string
}

// userParts takes the user's data apart, or makes one part of it.
func userParts(text string) ([]part, error) {
	trimmed := strings.TrimSpace(text)
	head := strings.ToLower(trimmed[:min(len(trimmed), 64)])
	switch {
	case trimmed == "":
		return nil, nil
	case strings.HasPrefix(head, "mime-version:") || strings.HasPrefix(head, "content-type: multipart/"):
		return readParts(trimmed)
	case strings.Contains(trimmed, nodeConfigVersion) && !strings.HasPrefix(trimmed, "#!"):
		return []part{{textproto.MIMEHeader{"Content-Type": {nodeConfigMedia}}, text}}, nil
	default:
		return []part{{textproto.MIMEHeader{"Content-Type": {scriptMedia}}, text}}, nil
	}
}

func readParts(text string) ([]part, error) {
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading the MIME header: %w", err)
	}
	media, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(media, "multipart/") {
		return nil, fmt.Errorf("the content type %q is not multipart", message.Header.Get("Content-Type"))
	}
	var out []part
	for reader := multipart.NewReader(message.Body, params["boundary"]); ; {
		one, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading part %d: %w", len(out)+1, err)
		}
		body, err := io.ReadAll(one)
		if err != nil {
			return nil, fmt.Errorf("reading part %d: %w", len(out)+1, err)
		}
		out = append(out, part{one.Header, string(body)})
	}
}

// writeParts joins parts. The boundary derives from the content: it is the same
// each time, and no part can contain it.
func writeParts(parts []part) (string, error) {
	var bodies []string
	for _, p := range parts {
		bodies = append(bodies, p.body)
	}
	boundary := "joist-" + event.DeriveID("boundary", event.Cluster{}, bodies...)
	var out bytes.Buffer
	writer := multipart.NewWriter(&out)
	if err := writer.SetBoundary(boundary); err != nil {
		return "", fault.E("writing user data", fault.Bug, err)
	}
	fmt.Fprintf(&out, "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=%q\r\n\r\n", boundary)
	for _, p := range parts {
		to, err := writer.CreatePart(p.header)
		if err == nil {
			_, err = io.WriteString(to, p.body)
		}
		if err != nil {
			return "", fault.E("writing user data", fault.Bug, err)
		}
	}
	if err := writer.Close(); err != nil {
		return "", fault.E("writing user data", fault.Bug, err)
	}
	return out.String(), nil
}
