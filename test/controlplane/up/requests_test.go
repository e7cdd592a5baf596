package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/traffic"
)

func TestLine(t *testing.T) {
	t.Parallel()
	names := clusterNames{{"us-east", "cluster-1"}, {"us-west", "cluster-2"}}
	for want, p := range map[string]*traffic.Phase{
		"in 10 s: us-east answered 7, us-west answered 0, failed 0": {Took: 10 * time.Second, Answered: map[traffic.Answer]int{
			{Cluster: "cluster-1", Pod: "a"}: 3, {Cluster: "cluster-1", Pod: "b"}: 4,
		}},
		"in 0 s: us-east answered 0, us-west answered 1, an unknown cluster answered 2, cluster-3 answered 1, failed 3 (502 Bad Gateway, no response)": {
			Answered: map[traffic.Answer]int{{Cluster: "cluster-2"}: 1, {Cluster: "cluster-3"}: 1, {}: 2},
			Wrong:    map[string]int{"502 Bad Gateway: EOF": 1, "502 Bad Gateway: reset": 1, "no response: EOF": 1},
		},
	} {
		if diff := cmp.Diff(want, names.line(p)); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	}
	answered := map[traffic.Answer]int{{Cluster: "here", Pod: "a"}: 3, {Cluster: "here", Pod: "b"}: 4}
	if diff := cmp.Diff("in 10 s: answered 7, by 2 of its pods, failed 0", clusterNames{}.line(&traffic.Phase{Took: 10 * time.Second, Answered: answered})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestRequests says what came of the requests for each line of its input, and then ends.
func TestRequests(t *testing.T) {
	t.Parallel()
	arrived := make(chan bool, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Via", "1.1 cluster-1")
		answer := "{}"
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), `"stream":true`) {
			answer = "data: [DONE]"
		}
		_, _ = io.WriteString(w, answer)
		select {
		case arrived <- true:
		default:
		}
	}))
	t.Cleanup(s.Close)
	lines, input := io.Pipe()
	said, output := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		defer output.Close()
		at := strings.TrimPrefix(s.URL, "http://")
		ended <- requests([]string{"--gateway", at, "--host", "h", "--model", "m", "--every", "5ms", "us-east=cluster-1"}, lines, output)
	}()
	read := bufio.NewScanner(said)
	next := func() string {
		t.Helper()
		if !read.Scan() {
			t.Fatal("it says nothing more")
		}
		return read.Text()
	}
	if diff := cmp.Diff("200 requests a second, every fourth for a stream. The first is answered in us-east.", next()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	line := regexp.MustCompile(`^in \d+ s: us-east answered (\d+), failed 0$`)
	answered := func(of string) int {
		t.Helper()
		// One may have arrived in the phase before.
		for range 2 {
			<-arrived
		}
		if _, err := io.WriteString(input, of+"\n"); err != nil {
			t.Fatal(err)
		}
		m := line.FindStringSubmatch(next())
		if m == nil {
			t.Fatalf("it says %q", read.Text())
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first, second, sum := answered(""), answered(""), answered("sum")
	if first == 0 || second == 0 || sum <= first+second {
		t.Errorf("it counts %d and %d requests, and %d since it began", first, second, sum)
	}
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRequestsOfMalformedCluster(t *testing.T) {
	t.Parallel()
	if err := requests([]string{"us-east"}, strings.NewReader(""), io.Discard); err == nil || !strings.Contains(err.Error(), "not such as us-east=cluster-1") {
		t.Errorf("it says %v", err)
	}
}
