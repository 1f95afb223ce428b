// Package catalog describes what EC2 offers: instance types, where and at what price each is offered, the labels of a
// node of the type, and the resources that pods can use on it.
//
// A catalogue is one complete, read-only value that is stored as a document. The catalog service writes it from the
// live account; the binary contains an older copy (EmbeddedCatalogue), so that plans can be made, explained and
// tested without an AWS account. All other functions in the package are pure functions of that value.
//
// Invariants, checked by Catalogue.Validate:
//   - Types are sorted by name and their names differ; Offerings are sorted by zone, then capacity type.
//   - Every price is a finite number of US dollars per hour, or of the catalogue's Currency. It is 0 if the
//     price is unknown; such an offering is never available.
//   - The same inputs give the same bytes: a catalogue has no maps, and no time from a clock.
//
// Catalogues are shared: treat one as read-only, and use Clone before changing it.
package catalog
