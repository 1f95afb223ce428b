package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
)

// refreshCatalogue publishes the region's catalogue with the cluster's facts, if it
// differs from the current one.
func (s Service) refreshCatalogue(ctx context.Context, e event.Envelope) error {
	read := s.readStatic
	if s.Market != nil {
		read = s.readMarket
	}
	doc, warnings, err := read(ctx)
	if err != nil {
		return err
	}
	doc, uncounted, err := s.addCounts(ctx, doc)
	if err != nil {
		return err
	}
	warnings = append(warnings, uncounted...)
	ref, err := blob.Put(ctx, s.Blobs, s.Now(), catalog.Kind, doc)
	if err != nil {
		return fmt.Errorf("storing the catalogue: %w", err)
	}
	current, err := blob.GetLatest(ctx, s.Blobs, catalog.Kind)
	if err != nil && !fault.Is(err, fault.Missing, fault.Invalid, fault.Poison) {
		return err
	}
	changed := err != nil || current != ref
	host.AddLogFields(ctx, "types", len(doc.Types), "catalogue", ref.Digest.ShortText(), "changed", changed)
	if len(warnings) > 0 {
		host.AddLogFields(ctx, "warnings", warnings)
	}
	if !changed {
		return s.renewPointer(ctx, ref)
	}
	// The pointer is moved last. Otherwise a crash between the two steps would make a
	// catalogue current that was never published.
	fact := event.CatalogRefreshed{Region: doc.Region, AsOf: doc.AsOf, Types: len(doc.Types), Catalogue: ref, Warnings: warnings}
	if err := s.publishEvent(ctx, e, fact); err != nil {
		return err
	}
	return blob.SetLatest(ctx, s.Blobs, ref)
}

// renewPointer writes the pointer to the current catalogue again before the bucket
// expires it.
func (s Service) renewPointer(ctx context.Context, ref event.Ref) error {
	written, err := s.Blobs.LastWritten(ctx, catalog.Kind+"/latest")
	if err == nil && s.Now().Sub(written) < blob.Retention/2 {
		return nil
	}
	return blob.SetLatest(ctx, s.Blobs, ref)
}

// readStatic returns the static catalogue with the cluster's facts.
func (s Service) readStatic(ctx context.Context) (catalog.Catalogue, []string, error) {
	doc, err := s.staticCatalogue(ctx)
	if err != nil {
		return doc, nil, err
	}
	info, err := s.describeCluster(ctx)
	if err != nil {
		return doc, nil, err
	}
	// The catalogue's slices are shared; only the copied struct is changed.
	doc.Cluster = clusterFacts(info)
	return doc, nil, nil
}

// staticCatalogue returns the catalogue without reading the market from AWS.
func (s Service) staticCatalogue(ctx context.Context) (catalog.Catalogue, error) {
	if s.StaticCatalogue != nil {
		doc, err := s.StaticCatalogue(ctx, s.Region)
		if err != nil {
			return doc, fmt.Errorf("reading the catalogue of %s: %w", s.Region, err)
		}
		return doc, nil
	}
	doc, err := catalog.EmbeddedCatalogue(s.Region)
	if err != nil {
		return doc, fault.E("reading the embedded catalogue", fault.Invalid, err).
			WithHint("use a region that the embedded catalogue has, or add its data with make catalog")
	}
	return doc, nil
}

// clusterFacts returns the facts that nodes need. The IP family follows from the service
// CIDR, which has colons in IPv6 only.
func clusterFacts(info cloud.ClusterInfo) catalog.ClusterFacts {
	family := "ipv4"
	if strings.Contains(info.ServiceCIDR, ":") {
		family = "ipv6"
	}
	return catalog.ClusterFacts{
		Name: info.Name, Endpoint: info.Endpoint, CABundle: info.CABundle,
		ServiceCIDR: info.ServiceCIDR, Version: info.Version, IPFamily: family,
	}
}
