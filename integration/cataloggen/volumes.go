package main

import (
	"path/filepath"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// xenVolumes is the guaranteed number of volumes of a type without Nitro. EC2 documents
// 40, of which the driver reserves one for the system.
const xenVolumes = 39

// readVolumes reads the tables of the EBS driver: types with another limit than the
// common 27 in all, its corrections, and the types without Nitro.
func readVolumes(dir string) (map[string]catalog.Attachments, error) {
	table := filepath.Join(dir, "volume_limits_table.go")
	listed, err := variable(table, "volumeLimits")
	if err != nil {
		return nil, err
	}
	xen, err := variable(table, "nonNitroInstanceTypes")
	if err != nil {
		return nil, err
	}
	corrected, err := variable(filepath.Join(dir, "volume_limits.go"), "dedicatedInstances")
	if err != nil {
		return nil, err
	}
	out := map[string]catalog.Attachments{}
	for name, value := range listed {
		if fields := elements(value); len(fields) == 2 {
			_, dedicated := corrected[name]
			out[name] = catalog.Attachments{Count: integer(fields[0]), Dedicated: dedicated || text(fields[1]) == "dedicated"}
		}
	}
	for name := range xen {
		out[name] = catalog.Attachments{Count: xenVolumes, Dedicated: true}
	}
	return out, nil
}
