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

// scenarioMax is the maximum size of a scenario on stdin, in bytes.
const scenarioMax = 64 << 20

// readManifests reads the manifests of all files, each of them once. Its error lists the problems of all files.
func readManifests(stdin io.Reader, names []string, vars map[string]string) ([]manifest.Document, error) {
	var files []string
	for _, name := range names {
		more, err := listFiles(name)
		if err != nil {
			return nil, err
		}
		for _, file := range more {
			if file = filepath.Clean(file); !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	var documents []manifest.Document
	var all manifest.Problems
	for _, file := range files {
		data, err := readSource(stdin, file, manifest.FileMax)
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

// readSource reads a file, or stdin for -. It reads no more than maximum bytes of anything, also of a device
// that never ends, and nothing of a file that is known to be larger.
func readSource(stdin io.Reader, name string, maximum int64) ([]byte, error) {
	in, shown, isLarge := stdin, "stdin", false
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fileError(name, err).WithHint("check the path and its permissions")
		}
		defer func() { _ = file.Close() }() // It was only read.
		info, err := file.Stat()
		in, shown, isLarge = file, name, err == nil && info.Size() > maximum
	}
	var data []byte
	if !isLarge {
		var err error
		if data, err = io.ReadAll(io.LimitReader(in, maximum+1)); err != nil {
			return nil, fileError(shown, err).WithHint("check the path and its permissions")
		}
	}
	if isLarge || int64(len(data)) > maximum {
		return nil, fault.F("reading "+shown, fault.Invalid, "it has more than %d MiB", maximum>>20).WithHint("split it into several files")
	}
	return data, nil
}
