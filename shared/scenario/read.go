package scenario

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

const reading = "reading the scenario"

// Read reads a scenario from a folder, with its file of instance types next to it or at an absolute
// path, which folder must be able to open. Names that end in .gz are decompressed. The error is
// fault.Missing if the file does not exist, and otherwise fault.Invalid with Problems.
func Read(folder fs.FS, name string) (Scenario, error) {
	data, err := load(folder, name)
	if err != nil {
		return Scenario{}, fault.E(reading, fault.Missing, err).WithHint("check the path")
	}
	return Parse(folder, name, data)
}

// Parse reads a scenario from memory. folder may be nil if there are no other files; name is used in
// messages.
func Parse(folder fs.FS, name string, data []byte) (Scenario, error) {
	var problems Problems
	c := check{file: name, problems: &problems}
	notes := decode(name, data, &c.document, &problems)
	c.typesFile, c.types = name, c.document.InstanceTypes
	if len(problems.List) == 0 {
		notes = append(notes, c.readTypesFile(folder)...)
	}
	if len(problems.List) == 0 {
		c.all()
	}
	if len(problems.List) > 0 {
		return Scenario{}, fault.E(reading, fault.Invalid, &problems)
	}
	out := build(c.document, c.types)
	out.Notes = append(notes, out.Notes...)
	if more := len(out.Notes) - problemsMax; more > 0 {
		out.Notes = append(out.Notes[:problemsMax], fmt.Sprintf("and %d more", more))
	}
	return out, nil
}

// readTypesFile reads the separate file of instance types, if the scenario names one.
func (c *check) readTypesFile(folder fs.FS) (notes []string) {
	name := c.document.InstanceTypesFile
	const field = "instanceTypesFile"
	switch {
	case name == "" && c.types == nil:
		c.problem("instanceTypes", "missing: list the instance types, or name a file next to the scenario in %s", field)
		return nil
	case name == "":
		return nil
	case c.types != nil:
		c.problem(field, "the scenario has instanceTypes too: remove one of the two")
		return nil
	case folder == nil:
		c.problem(field, "cannot read %q: the scenario has no folder; write the list into instanceTypes", name)
		return nil
	}
	at := name
	if !path.IsAbs(name) {
		at = path.Join(path.Dir(c.file), name)
	}
	data, err := load(folder, at)
	if err != nil {
		c.problem(field, "%v: put the file next to the scenario, or write its absolute path", err)
		return nil
	}
	c.typesFile, c.types = name, []instanceType{}
	return decode(name, data, &c.types, c.problems)
}

// load reads a whole file.
func load(folder fs.FS, name string) ([]byte, error) {
	if !fs.ValidPath(name) && !path.IsAbs(name) {
		return nil, fmt.Errorf("%q is not in the folder of the scenario", name)
	}
	file, err := folder.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", name, cause(err))
	}
	size := int64(0)
	if info, err := file.Stat(); err == nil {
		size = info.Size()
	}
	data, err := unpack(name, file, size)
	return data, errors.Join(err, file.Close())
}

// cause returns the error without the path, which depends on the folder.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// unpack reads a file, and decompresses it if its name ends in .gz. It allocates memory for the given size at once.
func unpack(name string, from io.Reader, size int64) ([]byte, error) {
	if strings.HasSuffix(name, ".gz") {
		unpacked, err := gzip.NewReader(from)
		if err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", name, err)
		}
		from = unpacked
	}
	var data bytes.Buffer
	data.Grow(int(min(size, fileMax)) + bytes.MinRead)
	_, err := data.ReadFrom(io.LimitReader(from, fileMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", name, cause(err))
	case data.Len() > fileMax:
		return nil, fmt.Errorf("%s is larger than %d MiB", name, fileMax>>20)
	}
	return bytes.TrimPrefix(data.Bytes(), []byte("\xef\xbb\xbf")), nil
}
