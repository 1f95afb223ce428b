// Package helm runs Helm on the charts of deploy/charts and reads the values of a chart.
// It builds Helm once per version into .cache/bin.
package helm
