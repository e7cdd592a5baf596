package engineflags

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProblems reads command lines that an engine refuses, and such that look like them.
func TestProblems(t *testing.T) {
	cases := map[string]struct {
		reason string
		engine *Table
		line   string
		tag    string
		want   []Problem
	}{
		"Fine": {
			reason: "Every form that the parser of vLLM reads.",
			line:   "Qwen/Qwen3-8B --max_model_len 32k -tp=8 -q awq -n2 --tensor-parallel 8 --no-enable-prefix-caching --kv-transfer-config.kv_role kv_both -cc.mode 3 -O3 --hf-token --seed -1",
			tag:    "v0.19.0",
		},
		"Variables": {
			reason: "What a variable is, only the pod knows.",
			line:   "$(MODEL) --max-model-len $(LENGTH) --kv-cache-dtype=$DTYPE $(MORE) --$FLAG",
			tag:    "v0.19.0",
		},
		"Misspelt": {
			line: "m --gpu-memory-utilisation 0.9", tag: "v0.19.0",
			want: []Problem{{1, "vLLM v0.19.0 has no flag --gpu-memory-utilisation: did you mean --gpu-memory-utilization?"}},
		},
		"MisspeltInSomeRelease": {
			line: "m --gpu-memory-utilisation 0.9", tag: "latest",
			want: []Problem{{1, "no release of vLLM up to v0.24.0, nor its main branch of 2026-08-17, has a flag --gpu-memory-utilisation: did you mean --gpu-memory-utilization?"}},
		},
		"MisspeltInANewerRelease": {
			line: "m --gpu-memory-utilisation 0.9", tag: "v0.99.0",
			want: []Problem{{1, "no release of vLLM up to v0.24.0, nor its main branch of 2026-08-17, has a flag --gpu-memory-utilisation: did you mean --gpu-memory-utilization?"}},
		},
		"MisspeltInTheNext": {
			reason: "v0.28.0 was made of main after the day of the table, so it may have more flags.",
			line:   "m --gpu-memory-utilisation 0.9", tag: "v0.28.0",
			want: []Problem{{1, "no release of vLLM up to v0.24.0, nor its main branch of 2026-08-17, has a flag --gpu-memory-utilisation: did you mean --gpu-memory-utilization?"}},
		},
		"UnknownInTheNext":     {reason: "It may be younger than the table.", line: "m --something-else 3", tag: "v0.28.0"},
		"GoneInTheNext":        {reason: "It may be back.", line: "m --num-scheduler-steps 8", tag: "v0.28.0"},
		"ChoiceOfTheNext":      {reason: "It may be younger than the table.", line: "m --kv-cache-dtype fp7", tag: "v0.28.0"},
		"BeforeTheNext":        {reason: "v0.27.1 is between v0.24.0 and main.", line: "m --something-else 3 --cohere-format x", tag: "v0.27.1"},
		"GoneBeforeTheNext":    {line: "m --num-scheduler-steps 8", tag: "v0.27.1", want: []Problem{{1, "vLLM v0.27.1 has no flag --num-scheduler-steps: v0.10.0 was one of the last that had it, so leave the flag out"}}},
		"OnlyInMain":           {line: "m --cohere-format x", tag: "v0.24.0", want: []Problem{{1, "vLLM v0.24.0 has no flag --cohere-format: the main branch of 2026-08-17 has it, so use a newer image or leave the flag out"}}},
		"Unknown":              {line: "m --something-else 3", tag: "v0.19.0", want: []Problem{{1, "vLLM v0.19.0 has no flag --something-else: leave it out"}}},
		"UnknownInSomeRelease": {reason: "It may be newer than the tables, or a plugin's.", line: "m --something-else 3"},
		"Future":               {line: "m --attention-backend x", tag: "v0.10.0", want: []Problem{{1, "vLLM v0.10.0 has no flag --attention-backend: v0.16.0 has it, so use a newer image or leave the flag out"}}},
		"Gone":                 {line: "m --num-scheduler-steps 8", tag: "v0.19.0", want: []Problem{{1, "vLLM v0.19.0 has no flag --num-scheduler-steps: v0.10.0 was one of the last that had it, so leave the flag out"}}},
		"BetweenReleases":      {reason: "v0.11.0 is between v0.10.1 and v0.11.2, of which one has each flag.", line: "m --swap-space 4 --cudagraph-capture-sizes 1 2", tag: "v0.11.0"},
		"InAGap":               {reason: "v0.17.0 had a flag that v0.16.0 and v0.19.0 do not have.", line: "m --use-gpu-for-pooling-score", tag: "v0.17.0"},
		"GoneInAGap":           {line: "m --num-scheduler-steps 8", tag: "v0.17.0", want: []Problem{{1, "vLLM v0.17.0 has no flag --num-scheduler-steps: v0.10.0 was one of the last that had it, so leave the flag out"}}},
		"MisspeltInAGap":       {line: "m --gpu-memory-utilisation 0.9", tag: "v0.17.0", want: []Problem{{1, "vLLM v0.17.0 has no flag --gpu-memory-utilisation: did you mean --gpu-memory-utilization?"}}},
		"Candidate":            {reason: "A release candidate has the flags of neither release.", line: "m --attention-backend x", tag: "v0.10.0rc1"},
		"Suffix":               {line: "m --something-else 3", tag: "v0.19.0-cu130", want: []Problem{{1, "vLLM v0.19.0 has no flag --something-else: leave it out"}}},
		"Ambiguous":            {line: "m --max-num 4", tag: "v0.19.0", want: []Problem{{1, "--max-num is short for several flags of vLLM, such as --max-num-batched-tokens and --max-num-partial-prefills: write the whole name"}}},
		"ValueOfASwitch": {
			line: "m --enforce-eager true --enable-prefix-caching=False --headless 0", tag: "v0.19.0",
			want: []Problem{
				{2, `--enforce-eager takes no value, so vLLM cannot parse "true": write --enforce-eager alone`},
				{3, `--enable-prefix-caching takes no value, so vLLM cannot parse "False": write --no-enable-prefix-caching`},
				{5, `--headless takes no value, so vLLM cannot parse "0": leave the flag out`},
			},
		},
		"ModelAfterASwitch": {line: "--enforce-eager Qwen/Qwen3-8B", tag: "v0.19.0"},
		"NoValue": {
			line: "m --max-model-len --port 8000 --seed", tag: "v0.19.0",
			want: []Problem{
				{1, "--max-model-len needs a value, and none follows: add it as the next element"},
				{4, "--seed needs a value, and none follows: add it as the next element"},
			},
		},
		"Choice": {
			line: "m --kv-cache-dtype fp7 --mm-encoder-tp-mode=data", tag: "v0.19.0",
			want: []Problem{{2, `--kv-cache-dtype cannot be "fp7": vLLM allows auto, bfloat16, float16, fp8, fp8_ds_mla, fp8_e4m3, fp8_e5m2, fp8_inc, fp8_per_token_head, int4_per_token_head, int8_per_token_head, nvfp4, …`}},
		},
		"ChoiceOfANewerRelease": {line: "m --kv-cache-dtype fp7", tag: "v0.99.0"},
		"Rest":                  {reason: "Nothing after -- is a flag.", line: "m -- --something-else", tag: "v0.19.0"},
		"SGLang":                {engine: SGLang(), line: "--model-path m --tp 8 --mem-fraction-static 0.8 --dp-size 2 --enable-dp-attention", tag: "v0.5.9"},
		"SGLangUnderscore": {
			reason: "Its parser knows dashes only.",
			engine: SGLang(), line: "--model-path m --context_length 8192", tag: "v0.5.9",
			want: []Problem{{2, "SGLang v0.5.9 has no flag --context_length: did you mean --context-length?"}},
		},
		"SGLangFlagOfVLLM": {engine: SGLang(), line: "--model-path m --gpu-memory-utilization 0.9", tag: "v0.5.9", want: []Problem{{2, "SGLang v0.5.9 has no flag --gpu-memory-utilization: leave it out"}}},
		"Diffusion":        {reason: "sglang serve starts another server for models that make images.", engine: SGLang(), line: "--model-path m --num-gpus 4 --anything 1", tag: "v0.5.18"},
		"Plugin":           {engine: SGLang(), line: "m --model-type mine --anything 1", tag: "v0.5.18"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			table := tc.engine
			if table == nil {
				table = VLLM()
			}
			got := table.Read(strings.Fields(tc.line), tc.tag).Problems
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestValues reads what is given on command lines.
func TestValues(t *testing.T) {
	cases := map[string]struct {
		words []string
		names []string
		want  Given
		open  bool
		model string
	}{
		"Short":       {words: []string{"m", "-tp", "8"}, names: []string{"--tensor-parallel-size"}, want: Given{Index: 1, Flag: "-tp", Value: "8"}, model: "m"},
		"Joined":      {words: []string{"m", "--tensor_parallel_size=8"}, names: []string{"--tensor-parallel-size"}, want: Given{Index: 1, Flag: "--tensor_parallel_size", Value: "8"}, model: "m"},
		"Last":        {words: []string{"-tp", "8", "m", "--tensor-parallel-size", "4"}, names: []string{"--tensor-parallel-size"}, want: Given{Index: 3, Flag: "--tensor-parallel-size", Value: "4"}, model: "m"},
		"Abbreviated": {words: []string{"--tensor-par", "4"}, names: []string{"--tensor-parallel-size"}, want: Given{Index: 0, Flag: "--tensor-par", Value: "4"}},
		"Attached":    {words: []string{"-n2"}, names: []string{"--nnodes"}, want: Given{Index: 0, Flag: "-n2", Value: "2"}},
		"Key":         {words: []string{"--kv-transfer-config.kv_connector", "A"}, names: []string{"--kv-transfer-config.kv_connector"}, want: Given{Index: 0, Flag: "--kv-transfer-config.kv_connector", Key: "kv_connector", Value: "A"}},
		"KeyAlone":    {words: []string{"--kv-transfer-config.kv_connector", "A"}, names: []string{"--kv-transfer-config"}},
		"File":        {words: []string{"--config", "a.yaml"}, names: []string{"--config"}, want: Given{Index: 0, Flag: "--config", Value: "a.yaml"}, open: true},
		"Model":       {words: []string{"$(MODEL)", "-q", "awq"}, names: []string{"--quantization"}, want: Given{Index: 1, Flag: "-q", Value: "awq"}, model: "$(MODEL)"},
		"Variable":    {words: []string{"m", "$(MORE)"}, names: []string{"--seed"}, open: true, model: "m"},
		"TwoInOne":    {words: []string{"m", "--seed 3"}, names: []string{"--seed"}, open: true, model: "m"},
		"Rest":        {words: []string{"--seed", "3", "--", "m"}, names: []string{"--seed"}, want: Given{Index: 0, Flag: "--seed", Value: "3"}, model: "m"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			line := VLLM().Read(tc.words, "v0.19.0")
			got, _ := line.Get(tc.names...)
			if diff := cmp.Diff(tc.want, got); diff != "" || line.Open != tc.open || line.Model != tc.model {
				t.Errorf("open %v, model %q, -want, +got:\n%s", line.Open, line.Model, diff)
			}
		})
	}
}

// TestTables proves that the tables can be read, and have what other packages ask for.
func TestTables(t *testing.T) {
	cases := map[string]struct {
		text  string
		flags []string
	}{
		"vLLM": {vllmTable, []string{
			"--tensor-parallel-size", "-tp", "--pipeline-parallel-size", "--data-parallel-size", "--data-parallel-size-local", "--prefill-context-parallel-size", "--distributed-executor-backend",
			"--model", "--served-model-name", "--block-size", "--kv-cache-dtype", "--kv-transfer-config", "--max-model-len", "--nnodes", "--node-rank", "--headless", "--config",
		}},
		"SGLang": {sglangTable, []string{
			"--tensor-parallel-size", "--tp-size", "--pipeline-parallel-size", "--data-parallel-size", "--enable-dp-attention", "--model-path", "--model", "--served-model-name", "--page-size",
			"--kv-cache-dtype", "--disaggregation-transfer-backend", "--context-length", "--nnodes", "--node-rank", "--dist-init-addr", "--base-gpu-id", "--config",
		}},
	}
	for engine, tc := range cases {
		t.Run(engine, func(t *testing.T) {
			table, err := parse(engine, tc.text)
			if err != nil {
				t.Fatal(err)
			}
			for i := 1; i < len(table.releases); i++ {
				if a, b := table.releases[i-1], table.releases[i]; a.version.Compare(b.version) >= 0 || a.main {
					t.Errorf("%s comes before %s", a.name, b.name)
				}
			}
			newest := window{releases: 1 << (len(table.releases) - 1)}
			for _, f := range tc.flags {
				r := reader{Table: table, window: newest}
				if len(r.in(f)) != 1 {
					t.Errorf("%s: want one entry in the newest release, got %v", f, r.in(f))
				}
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, table := range []string{"value --a", "release x y", "value --a 0", "release v1.0.0 a\nvalue --a 1", "release v1.0.0 a\nvalue --a x", "release v1.0.0 a\nvalue --a 0-x", "main v1.0.0 a", "main x a b"} {
		if _, err := parse("vLLM", table); err == nil {
			t.Errorf("%q is read without an error", table)
		}
	}
}

// TestNewFlags pretends that each release were not known, and its new flags are used. None is taken for
// a misspelt one of earlier releases, except for one that was renamed by a letter.
func TestNewFlags(t *testing.T) {
	renamed := map[string]bool{"--enable-dsa-prefill-context-parallel": true}
	for _, table := range []*Table{VLLM(), SGLang()} {
		for i := range len(table.releases) - 1 {
			before, next := set(1)<<(i+1)-1, set(1)<<(i+1)
			for _, name := range table.names {
				old := reader{Table: table, window: window{releases: before}}
				now := reader{Table: table, window: window{releases: next}}
				if len(old.in(name)) > 0 || len(now.in(name)) == 0 || renamed[name] {
					continue
				}
				if near := old.near(name); near != "" {
					t.Errorf("%s is new in %s and is taken for %s", name, table.releases[i+1].name, near)
				}
			}
		}
	}
}

// TestBounds reads long command lines. Their problems are limited, and so is what it costs to find them.
func TestBounds(t *testing.T) {
	words := make([]string, 100_000)
	for i := range words {
		words[i] = fmt.Sprintf("--gpu-memory-utilisation-%d%s", i, strings.Repeat("x", i%64))
	}
	r := reader{Table: VLLM(), window: VLLM().window("v0.19.0"), words: words[:maxWords], line: &Line{given: map[string]Given{}}}
	for i := 0; i < len(r.words); {
		i = r.next(i)
	}
	if len(r.line.Problems) != maxProblems || r.searches > maxSearches {
		t.Errorf("%d problems after %d searches", len(r.line.Problems), r.searches)
	}
	if !VLLM().Read(words, "").Open {
		t.Errorf("words beyond %d are unknown flags", maxWords)
	}
	huge := strings.Repeat("y", 1<<20)
	for _, p := range VLLM().Read([]string{"--" + huge, "--enforce-eager=" + huge, "--kv-cache-dtype", huge}, "v0.19.0").Problems {
		if len(p.Message) > 500 {
			t.Errorf("a message has %d bytes", len(p.Message))
		}
	}
}
