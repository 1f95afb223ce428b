package records

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Directory is a copy of a cluster's documents in a directory, with a file for each object, as aws s3
// sync makes it. The time of a file is the time of the object's last write.
type Directory string

var _ blob.Lister = Directory("")

// Put writes the file.
func (d Directory) Put(_ context.Context, key string, data []byte) error {
	name := d.fileName(key)
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err == nil {
		err = os.WriteFile(name, data, 0o644)
	}
	if err != nil {
		return fault.E("writing "+key, fault.Invalid, err)
	}
	return nil
}

// SetTime sets the time of an object's last write.
func (d Directory) SetTime(key string, at time.Time) error {
	if err := os.Chtimes(d.fileName(key), at, at); err != nil {
		return fault.E("setting the time of "+key, fault.Invalid, err)
	}
	return nil
}

// Get reads the file, of at most blob.MaxObject bytes.
func (d Directory) Get(_ context.Context, key string) ([]byte, error) {
	info, err := os.Stat(d.fileName(key))
	if err != nil {
		return nil, wrapFileError("reading "+key, err)
	}
	if info.Size() > blob.MaxObject {
		return nil, fault.F("reading "+key, fault.Invalid, "the file exceeds the limit of %d bytes", blob.MaxObject)
	}
	data, err := os.ReadFile(d.fileName(key))
	if err != nil {
		return nil, wrapFileError("reading "+key, err)
	}
	return data, nil
}

// LastWritten returns the time of the file.
func (d Directory) LastWritten(_ context.Context, key string) (time.Time, error) {
	info, err := os.Stat(d.fileName(key))
	if err != nil {
		return time.Time{}, wrapFileError("checking for "+key, err)
	}
	return info.ModTime(), nil
}

// List yields the files below the directory whose keys begin with prefix.
func (d Directory) List(ctx context.Context, prefix string) iter.Seq2[blob.StoredObject, error] {
	return func(yield func(blob.StoredObject, error) bool) {
		err := filepath.WalkDir(string(d), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
			inside, err := filepath.Rel(string(d), name)
			if err != nil {
				return err
			}
			key := filepath.ToSlash(inside)
			if !strings.HasPrefix(key, prefix) {
				return nil
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			if !yield(blob.StoredObject{Key: key, Size: int(info.Size()), LastWritten: info.ModTime()}, nil) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(blob.StoredObject{}, wrapFileError(fmt.Sprintf("listing %s in %s", prefix, d), err))
		}
	}
}

func (d Directory) fileName(key string) string {
	return filepath.Join(string(d), filepath.FromSlash(key))
}

func wrapFileError(op string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.E(op, fault.Missing, err)
	}
	return fault.E(op, fault.Invalid, err)
}
