package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// The chart's test pod requests URLs for checkTimeout in total, and each again after checkPause.
const (
	checkTimeout = time.Minute
	checkPause   = 2 * time.Second
)

// checkURLs requests each URL until it returns 200, and prints the result. It returns the exit code: 1 if a URL does
// not return 200 before checkTimeout.
func checkURLs(ctx context.Context, client *http.Client, urls []string, out, problems io.Writer) int {
	if len(urls) == 0 {
		fmt.Fprintln(problems, "--check: no URL is given (write --check http://joist-watcher.joist.svc:8080/metrics)")
		return 2
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for _, url := range urls {
		err := checkURL(ctx, client, url)
		for err != nil && ctx.Err() == nil {
			sleepContext(ctx, checkPause)
			if ctx.Err() == nil {
				err = checkURL(ctx, client, url)
			}
		}
		if err != nil {
			fmt.Fprintf(problems, "%s: %v (see the log of its pods)\n", url, err)
			return 1
		}
		fmt.Fprintln(out, url, "ok")
	}
	return 0
}

func checkURL(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody) //nolint:gosec // the caller of the command line chooses the URL
	if err != nil {
		return err
	}
	response, err := client.Do(request) //nolint:gosec // the caller of the command line chooses the URL
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the status is %s", response.Status)
	}
	return errors.Join(err, response.Body.Close())
}
