package facts

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/services/cli/internal/kube"
	"github.com/joist-autoscaler/joist/services/cli/internal/migrate"
)

// definition has the parts of a CustomResourceDefinition that are read.
type definition struct {
	Metadata struct{ Name string }
	Spec     struct {
		Group      string
		Versions   []definedVersion
		Conversion struct {
			Strategy string
			Webhook  *struct{ ClientConfig clientConfig }
		}
	}
	Status struct{ StoredVersions []string }
}

type definedVersion struct {
	Name   string
	Served bool
	Schema struct {
		OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
	}
}

// clientConfig is where the API server sends the requests of a webhook.
type clientConfig struct {
	Service *struct{ Namespace, Name string }
	URL     string
}

func (c clientConfig) String() string {
	if c.Service == nil {
		return c.URL
	}
	return c.Service.Namespace + "/" + c.Service.Name
}

// karpenterGroups are the API groups of Karpenter's kinds.
var karpenterGroups = []string{"karpenter.sh", "karpenter.k8s.aws"}

// knownFields are fields that were added to v1 since 1.0, by kind.
var knownFields = map[string][]string{
	"nodepools.karpenter.sh":           {"spec.replicas"},
	"ec2nodeclasses.karpenter.k8s.aws": {"spec.capacityReservationSelectorTerms", "spec.networkInterfaces", "spec.placementGroupSelector"},
}

// readCRDs reads the definitions of Karpenter's kinds.
func (g *migration) readCRDs(ctx context.Context) error {
	found, err := kube.List[definition](ctx, g.kube, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
	if err != nil {
		return err
	}
	var all []migrate.CRD
	for i := range found {
		if d := &found[i]; slices.Contains(karpenterGroups, d.Spec.Group) {
			all = append(all, d.convert())
		}
	}
	g.set(func(f *migrate.MigrationFacts) { f.CRDs = all })
	return nil
}

func (d *definition) convert() migrate.CRD {
	out := migrate.CRD{Name: d.Metadata.Name, Stored: d.Status.StoredVersions}
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		if v.Served {
			out.Versions = append(out.Versions, v.Name)
		}
		for _, field := range knownFields[out.Name] {
			if v.Name == "v1" && !hasField(v.Schema.OpenAPIV3Schema, strings.Split(field, ".")) {
				out.Missing = append(out.Missing, field)
			}
		}
	}
	if w := d.Spec.Conversion.Webhook; d.Spec.Conversion.Strategy == "Webhook" && w != nil {
		out.WebhookService = w.ClientConfig.String()
	}
	return out
}

// hasField reports whether a schema has a field at a path.
func hasField(schema json.RawMessage, path []string) bool {
	var object struct{ Properties map[string]json.RawMessage }
	if len(path) == 0 {
		return true
	}
	if json.Unmarshal(schema, &object) != nil || object.Properties[path[0]] == nil {
		return false
	}
	return hasField(object.Properties[path[0]], path[1:])
}

// webhookConfiguration has the parts of both kinds of webhook configurations that are read.
type webhookConfiguration struct {
	Metadata struct{ Name string }
	Webhooks []struct {
		ClientConfig clientConfig
		Rules        []struct{ APIGroups []string }
	}
}

// readWebhooks reads the webhook configurations for Karpenter's kinds that call a Service of
// Karpenter. A policy engine's webhook is for all groups, or for these, but calls its own Service.
func (g *migration) readWebhooks(ctx context.Context) error {
	var all []migrate.Webhook
	for _, kind := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		found, err := kube.List[webhookConfiguration](ctx, g.kube, "/apis/admissionregistration.k8s.io/v1/"+kind)
		if err != nil {
			return err
		}
		for i := range found {
			if service := found[i].karpenterService(); service != "" {
				all = append(all, migrate.Webhook{Kind: kind, Name: found[i].Metadata.Name, Service: service})
			}
		}
	}
	g.set(func(f *migrate.MigrationFacts) { f.Webhooks = all })
	return nil
}

// karpenterService returns the Service of Karpenter that a configuration calls, or "".
func (c *webhookConfiguration) karpenterService() string {
	for _, w := range c.Webhooks {
		if s := w.ClientConfig.Service; s != nil && (strings.Contains(s.Name, "karpenter") || strings.HasSuffix(c.Metadata.Name, ".karpenter.sh") || strings.HasSuffix(c.Metadata.Name, ".karpenter.k8s.aws")) {
			return w.ClientConfig.String()
		}
	}
	return ""
}
