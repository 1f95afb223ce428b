package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

// sourceMax is the maximum size of a file of manifests and of stdin, in bytes.
const sourceMax = 64 << 20

// readManifests reads the manifests of all files. Its error lists the problems of all files.
func readManifests(stdin io.Reader, names []string, vars map[string]string) ([]manifest.Document, error) {
	var files []string
	for _, name := range names {
		more, err := listFiles(name)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	var documents []manifest.Document
	var all manifest.Problems
	for _, file := range files {
		data, err := readSource(stdin, file)
		if err != nil {
			return nil, err
		}
		found, err := manifest.Read(file, data, manifest.Expand(vars))
		var problems *manifest.Problems
		switch {
		case errors.As(err, &problems):
			all.List, all.More = append(all.List, problems.List...), all.More+problems.More
		case err != nil:
			return nil, err
		}
		documents = append(documents, found...)
	}
	if len(all.List) > 0 {
		return nil, fault.E("reading the manifests", fault.Invalid, &all)
	}
	return documents, nil
}

// listFiles returns a file itself, or the manifests in a directory.
func listFiles(name string) ([]string, error) {
	if name == "-" {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fileError(name, err).WithHint("check the path; - reads from stdin")
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fileError(name, err).WithHint("check the permissions of the directory")
	}
	var out []string
	for _, entry := range entries {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(entry.Name()))) && !entry.IsDir() {
			out = append(out, filepath.Join(name, entry.Name()))
		}
	}
	if len(out) == 0 {
		return nil, fault.F("reading directory "+name, fault.Missing, "it has no .yaml, .yml or .json file").
			WithHint("give a file or another directory; subdirectories are not searched")
	}
	return out, nil
}

// fileError returns the error of a file or directory, with its name once.
func fileError(name string, err error) *fault.Error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	return fault.E("reading "+name, fault.Missing, err)
}

// readSource reads a file, or stdin for -. It reads no more than sourceMax bytes of anything, also of
// a device that never ends.
func readSource(stdin io.Reader, name string) ([]byte, error) {
	in, shown := stdin, "stdin"
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fileError(name, err).WithHint("check the path and its permissions")
		}
		defer func() { _ = file.Close() }() // It was only read.
		in, shown = file, name
	}
	data, err := io.ReadAll(io.LimitReader(in, sourceMax+1))
	switch {
	case err != nil:
		return nil, fileError(shown, err).WithHint("check the path and its permissions")
	case len(data) > sourceMax:
		return nil, fault.F("reading "+shown, fault.Invalid, "it has more than %d MiB", sourceMax>>20).WithHint("split the manifests into several files")
	}
	return data, nil
}
