package catalog

import "github.com/joist-autoscaler/joist/shared/event"

// Kind is the folder of catalogue documents.
const Kind = event.CatalogueKind
