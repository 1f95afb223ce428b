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

// refresh publishes the catalogue of the region with the facts of the cluster,
// if it is another than the one that is current.
func (s Service) refresh(ctx context.Context, e event.Envelope) error {
	read := s.atHand
	if s.Market != nil {
		read = s.sells
	}
	doc, warnings, err := read(ctx)
	if err != nil {
		return err
	}
	doc, uncounted, err := s.count(ctx, doc)
	if err != nil {
		return err
	}
	warnings = append(warnings, uncounted...)
	ref, err := blob.Put(ctx, s.Blobs, s.Now(), catalog.Kind, doc)
	if err != nil {
		return fmt.Errorf("storing the catalogue: %w", err)
	}
	current, err := blob.Latest(ctx, s.Blobs, catalog.Kind)
	if err != nil && !fault.Is(err, fault.Missing, fault.Invalid, fault.Poison) {
		return err
	}
	changed := err != nil || current != ref
	host.Say(ctx, "types", len(doc.Types), "catalogue", ref.Digest.Short(), "changed", changed)
	if len(warnings) > 0 {
		host.Say(ctx, "warnings", warnings)
	}
	if !changed {
		return s.keep(ctx, ref)
	}
	// The pointer is moved last. Were it first, a crash between the two would
	// leave a catalogue that is current and that nobody was told of.
	fact := event.CatalogRefreshed{Region: doc.Region, AsOf: doc.AsOf, Types: len(doc.Types), Catalogue: ref, Warnings: warnings}
	if err := s.publish(ctx, e, fact); err != nil {
		return err
	}
	return blob.Point(ctx, s.Blobs, ref)
}

// keep points to the current catalogue again before the bucket forgets that it
// is current.
func (s Service) keep(ctx context.Context, ref event.Ref) error {
	written, err := s.Blobs.Written(ctx, catalog.Kind+"/latest")
	if err == nil && s.Now().Sub(written) < blob.Retention/2 {
		return nil
	}
	return blob.Point(ctx, s.Blobs, ref)
}

// atHand is a catalogue that needs no asking, with the facts of the cluster.
func (s Service) atHand(ctx context.Context) (catalog.Catalogue, []string, error) {
	doc, err := s.offers(ctx)
	if err != nil {
		return doc, nil, err
	}
	info, err := s.describe(ctx)
	if err != nil {
		return doc, nil, err
	}
	// A catalogue that was handed out is shared; only the copied head is changed.
	doc.Cluster = facts(info)
	return doc, nil, nil
}

// offers is what the region sells, where AWS is not asked.
func (s Service) offers(ctx context.Context) (catalog.Catalogue, error) {
	if s.Offers != nil {
		doc, err := s.Offers(ctx, s.Region)
		if err != nil {
			return doc, fmt.Errorf("reading what %s sells: %w", s.Region, err)
		}
		return doc, nil
	}
	doc, err := catalog.Embedded(s.Region)
	if err != nil {
		return doc, fault.E("reading the embedded catalogue", fault.Invalid, err).
			WithHint("run in a region that the catalogue knows, or write its data with make catalog")
	}
	return doc, nil
}

// facts are what nodes need of the cluster. EKS has no word for the family in
// this shape, but a service range has colons only in IPv6.
func facts(info cloud.ClusterInfo) catalog.ClusterFacts {
	family := "ipv4"
	if strings.Contains(info.ServiceCIDR, ":") {
		family = "ipv6"
	}
	return catalog.ClusterFacts{
		Name: info.Name, Endpoint: info.Endpoint, CABundle: info.CABundle,
		ServiceCIDR: info.ServiceCIDR, Version: info.Version, IPFamily: family,
	}
}
