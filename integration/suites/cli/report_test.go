package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// reportFigures is the variable with the folder into which the pictures of the documentation are
// written. `make report-figures` sets it.
const reportFigures = "JOIST_REPORT_INTO"

// browsers are the names of Chromium.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// findBrowser returns the path of Chromium, or skips the test.
func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("none of %s was found: the report was not opened in a browser (apt-get install chromium)", strings.Join(browsers, ", "))
	return ""
}

// writeReport writes the report of a cluster with 60 nodes, some of which are kept, as a page.
func writeReport(t *testing.T) string {
	t.Helper()
	s := planningtest.GenerateCluster(rand.New(rand.NewPCG(7, 7)), 60, 260)
	s.Cluster = "shop-prod"
	for i := range s.NodePools {
		s.NodePools[i].Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "20%"}}
	}
	for i := range s.Nodes {
		protect(&s.Nodes[i], i)
	}
	folder := t.TempDir()
	for kind, document := range map[string]any{planning.SnapshotKind: s, catalog.Kind: planningtest.NewCatalogue()} {
		_, data, err := blob.Encode(kind, document)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, kind), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var page, stderr bytes.Buffer
	code := cli.Run(t.Context(), cli.Env{
		Args:   []string{"report", "-o", "html", "--snapshot", filepath.Join(folder, planning.SnapshotKind), "--catalogue", filepath.Join(folder, catalog.Kind)},
		Stdout: &page, Stderr: &stderr, Now: func() time.Time { return s.TakenAt },
	})
	if code != cli.ExitNothing {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	file := filepath.Join(folder, "report.html")
	if err := os.WriteFile(file, page.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// protect lets every seventh node have a pod that must not be disrupted, and every ninth one that a
// PodDisruptionBudget protects.
func protect(n *planning.Node, i int) {
	if len(n.Pods) == 0 {
		return
	}
	n.Pods = slices.Clone(n.Pods)
	class := &n.Pods[0]
	switch {
	case i%7 == 3:
		class.Spec.DoNotDisrupt = "true"
	case i%9 == 5:
		class.Pods = slices.Clone(class.Pods)
		class.Pods[0].BlockingPDB = class.Spec.Namespace + "/database"
	}
}

// visit is what a browser recorded of a page.
type visit struct {
	mu       sync.Mutex
	requests []string
	problems []string
}

// record is called with each event of the browser.
func (v *visit) record(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		v.requests = append(v.requests, e.Request.URL)
	case *runtime.EventConsoleAPICalled:
		v.problems = append(v.problems, fmt.Sprintf("console: %v", e.Args))
	case *runtime.EventExceptionThrown:
		v.problems = append(v.problems, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		v.problems = append(v.problems, e.Entry.Text)
	}
}

// TestReportPage opens the report in headless Chromium, in both colour schemes. The page causes no error
// and no request, its first link skips to the report, and the accessibility tree has its headings,
// tables and pictures.
func TestReportPage(t *testing.T) {
	browser := findBrowser(t)
	page := "file://" + writeReport(t)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(browser), chromedp.NoSandbox, chromedp.WindowSize(1100, 1000))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	defer stop()
	backgrounds := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			var seen visit
			ctx, cancel := chromedp.NewContext(allocator, chromedp.WithListener(seen.record))
			defer cancel()
			ctx, cancelTime := context.WithTimeout(ctx, 3*time.Minute)
			defer cancelTime()
			media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
			_, first := chromedp.Call(ctx, network.Enable, network.EnableParams{})
			_, second := chromedp.Call(ctx, log.Enable, cdp.Empty{})
			_, third := chromedp.Call(ctx, emulation.SetEmulatedMedia, media)
			if err := errors.Join(first, second, third, chromedp.Do(ctx, chromedp.Navigate(page))); err != nil {
				t.Fatal(err)
			}
			background := evaluate[string](ctx, t, `getComputedStyle(document.body).backgroundColor`)
			overflows := evaluate[bool](ctx, t, `document.documentElement.scrollWidth > document.documentElement.clientWidth`)
			if err := chromedp.Do(ctx, chromedp.KeyEvent("\t")); err != nil {
				t.Fatal(err)
			}
			focused := evaluate[string](ctx, t, `document.activeElement.getAttribute("href") || document.activeElement.tagName`)
			evaluate[bool](ctx, t, `document.activeElement.blur(), true`)
			tree, err := chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
			if err != nil {
				t.Fatal(err)
			}
			picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			seen.mu.Lock()
			defer seen.mu.Unlock()
			if len(seen.problems) > 0 || !slices.Equal(seen.requests, []string{page}) {
				t.Errorf("problems %q, requests %q", seen.problems, seen.requests)
			}
			if focused != "#main" || overflows {
				t.Errorf("the first tab focuses %q, the page is wider than the window: %t", focused, overflows)
			}
			backgrounds[scheme] = background
			checkTree(t, tree.Nodes)
			if into := os.Getenv(reportFigures); into != "" {
				writePicture(t, filepath.Join(into, "report-"+scheme+".png"), picture)
			}
		})
	}
	if backgrounds["light"] == backgrounds["dark"] || backgrounds["dark"] == "" {
		t.Errorf("the backgrounds are %v", backgrounds)
	}
}

// pictureColors is the number of colours of the documentation's pictures: with 16, which need 4 bits, they are a
// fifth as large as the screenshots, and text stays smooth. pictureMax is their maximum size in bytes.
const (
	pictureColors = 16
	pictureMax    = 100_000
)

// writePicture writes a screenshot with its most frequent colours only.
func writePicture(t *testing.T, file string, screenshot []byte) {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(screenshot))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[color.Color]int{}
	eachPixel(full.Bounds(), func(x, y int) { counts[full.At(x, y)]++ })
	byFrequency := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	small := image.NewPaletted(full.Bounds(), byFrequency[:min(len(byFrequency), pictureColors)])
	eachPixel(full.Bounds(), func(x, y int) { small.Set(x, y, full.At(x, y)) })
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, small); err != nil {
		t.Fatal(err)
	}
	if out.Len() > pictureMax {
		t.Errorf("%s would have %d bytes, more than %d", file, out.Len(), pictureMax)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func eachPixel(area image.Rectangle, visit func(x, y int)) {
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			visit(x, y)
		}
	}
}

// evaluate returns the value of an expression in the page.
func evaluate[T any](ctx context.Context, t *testing.T, expression string) T {
	t.Helper()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return out
}

// checkTree checks what a screen reader reads.
func checkTree(t *testing.T, nodes []*accessibility.Node) {
	t.Helper()
	names := map[string][]string{}
	for _, n := range nodes {
		if !n.Ignored {
			role := strings.Trim(string(n.Role.Value), `"`)
			names[role] = append(names[role], nameOf(n))
		}
	}
	for _, want := range []string{"Cost of the cluster shop-prod", "Cost", "Nodes", "Which nodes would go, and why", "What stands in the way", "NodePools"} {
		if !slices.Contains(names["heading"], want) {
			t.Errorf("the headings %q lack %q", names["heading"], want)
		}
	}
	for _, want := range []string{"Commands of disruption, in their order", "Cost of each NodePool"} {
		if !slices.Contains(names["table"], want) {
			t.Errorf("the tables %q lack %q", names["table"], want)
		}
	}
	pictures := slices.Concat(names["image"], names["img"], names["graphics-document"])
	for _, want := range []string{"Cost of the cluster", "Map of the nodes"} {
		if !slices.ContainsFunc(pictures, func(name string) bool { return strings.HasPrefix(name, want) }) {
			t.Errorf("the pictures %q lack %q", pictures, want)
		}
	}
	for _, role := range []string{"main", "columnheader", "rowheader"} {
		if len(names[role]) == 0 {
			t.Errorf("the page has no %s", role)
		}
	}
}

func nameOf(n *accessibility.Node) string {
	if n.Name == nil {
		return ""
	}
	return strings.Trim(string(n.Name.Value), `"`)
}
