package main

import (
	"encoding/json"

	"github.com/klauspost/compress/zstd"
)

// pack encodes JSON in one zstd frame, with one worker and without a timestamp, so that
// equal values give equal bytes.
func pack(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	writer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return nil, err
	}
	defer writer.Close()
	return writer.EncodeAll(text, nil), nil
}
