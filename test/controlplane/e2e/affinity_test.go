package e2e

import "context"

// stick proves what the strategy lora-affinity promises: while an engine runs an adapter, all requests for that adapter
// go there. Requests for no adapter go to several. Each model has an adapter of its own. A long answer keeps each running, because engines
// report what they run.
func (a *adapters) stick(models map[string]string) {
	a.t.Helper()
	ctx, stop := context.WithCancel(a.t.Context())
	defer stop()
	spread := a.answeredBy("Qwen/Qwen3-8B", 100)
	if len(spread) < 2 {
		a.t.Errorf("100 requests for no adapter are all answered by %v", spread)
	}
	a.t.Logf("requests for no adapter are answered by %v", spread)
	runs := map[string]string{}
	for name, adapter := range models {
		m := owned(a.t, a.namespace, name, "{serviceName: base, targets: [{name: only-"+name+", "+adapter+"}]}")
		apply(a.t, a.c, m)
		modelSays(a.t, a.c, m, "Ready", "True", "Available")
		want := a.directory("only-" + name)
		until(a.t, a.c, "the endpoint picker knows "+name, func(ctx context.Context) (bool, error) {
			got, err := a.askers.model(ctx, name)
			return got == want, err
		})
		long, err := a.post(ctx, name, `"stream":true,"max_tokens":1000000`)
		if err != nil {
			a.t.Fatal(err)
		}
		a.t.Cleanup(func() { long.Body.Close() })
		runs[name] = long.Header.Get("x-served-by")
		until(a.t, a.c, "the endpoint picker knows where "+name+" runs", func(ctx context.Context) (bool, error) {
			for range 20 {
				if _, pod, err := a.by(ctx, name); err != nil || pod != runs[name] {
					return false, err
				}
			}
			return true, nil
		})
	}
	for name, pod := range runs {
		got := a.answeredBy(name, 100)
		a.t.Logf("requests for %s, which %s runs, are answered by %v", name, pod, got)
		if pod == "" || got[pod] != 100 {
			a.t.Errorf("100 requests for %s, which %s runs, are answered by %v", name, pod, got)
		}
	}
}

// answeredBy asks for a model so many times, one request after the other, and counts the pods that have answered.
func (a *adapters) answeredBy(name string, n int) map[string]int {
	a.t.Helper()
	got := map[string]int{}
	for range n {
		_, pod, err := a.by(a.t.Context(), name)
		if err != nil {
			a.t.Errorf("a request for %s: %v", name, err)
		}
		got[pod]++
	}
	return got
}
