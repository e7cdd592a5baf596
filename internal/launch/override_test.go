package launch_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/launch"
)

// override returns the command line that Override makes, as words.
func override(under launch.Command, over []string) (launch.Command, error) {
	command, args, err := launch.Override(under, over)
	line := slices.Concat(under.Command, under.Args)
	text := func(words []launch.Word) (all []string) {
		for _, w := range words {
			if w.Over {
				all = append(all, over[w.Index])
			} else {
				all = append(all, line[w.Index])
			}
		}
		return all
	}
	return launch.Command{Command: text(command), Args: text(args)}, err
}

func TestOverride(t *testing.T) {
	cases := map[string]struct {
		reason        string
		command, args string
		over          string
		wantCommand   string
		want          string
		err           string
	}{
		"Replace": {
			reason: "A flag replaces the same flag with its value, in either form.",
			args:   "--a=1 --b 2 --c=3", over: "--b=5 --a 4", want: "--c=3 --b=5 --a 4",
		},
		"Add": {
			reason: "New flags come last, in their order.",
			args:   "--a=1", over: "--z --b 2", want: "--a=1 --z --b 2",
		},
		"Switch": {
			reason: "A switch takes no value from the flag after it.",
			args:   "--trust-remote-code --a 1 --eager", over: "--a 2", want: "--trust-remote-code --eager --a 2",
		},
		"Negated": {
			reason: "--no-x is the opposite of --x, so both are one flag.",
			args:   "--enable-prefix-caching --no-eager", over: "--no-enable-prefix-caching --eager", want: "--no-enable-prefix-caching --eager",
		},
		"SeveralValues": {
			reason: "A flag takes all words up to the next flag with it.",
			args:   "--lora-modules a=/a b=/b --x 1", over: "--lora-modules c=/c", want: "--x 1 --lora-modules c=/c",
		},
		"Repeated": {
			reason: "A flag that is repeated is replaced as a whole.",
			args:   "--m a --x --m b", over: "--m c --m d", want: "--x --m c --m d",
		},
		"Underscores": {
			reason: "vLLM reads _ in a name as -.",
			args:   "--max_model_len 1", over: "--max-model-len=2", want: "--max-model-len=2",
		},
		"UnderscoresInValues": {
			reason: "The value is not part of the name.",
			args:   "--a=x_y", over: "--b=x-y", want: "--a=x_y --b=x-y",
		},
		"NegativeNumber": {
			reason: "A negative number is a value.",
			args:   "--seed -1 --x", over: "--y -.5", want: "--seed -1 --x --y -.5",
		},
		"ShortFlags": {
			reason: "A flag with one dash is a flag.",
			args:   "-tp 4 -O3", over: "-tp=8", want: "-O3 -tp=8",
		},
		"JSON": {
			reason: "A value in JSON is a value, whatever it contains.",
			args:   `--kv-transfer-config {"a":"--b"}`, over: `--b 1`, want: `--kv-transfer-config {"a":"--b"} --b 1`,
		},
		"Model": {
			reason: "The words before the first flag come first, where vllm serve expects the model.",
			args:   "--a 1", over: "org/model --b", want: "org/model --a 1 --b",
		},
		"OtherModel": {
			reason: "Words before the first flag replace those of the profile.",
			args:   "org/small --a 1", over: "org/model", want: "org/model --a 1",
		},
		"SameModel": {
			reason: "Without such words those of the profile stay.",
			args:   "org/small --a 1", over: "--b", want: "org/small --a 1 --b",
		},
		"Command": {
			reason:  "A command without flags stays as it is.",
			command: "python3 -u -m vllm.entrypoints.openai.api_server", args: "--a 1", over: "--model m",
			wantCommand: "python3 -u -m vllm.entrypoints.openai.api_server", want: "--a 1 --model m",
		},
		"FlagsOfCommand": {
			reason:  "Flags of the command are flags of the line.",
			command: "vllm serve org/small --a 1 --b 2", args: "--c 3", over: "--a 4",
			wantCommand: "vllm serve org/small", want: "--b 2 --c 3 --a 4",
		},
		"Init": {
			reason:  "The -- is tini's.",
			command: "tini -- vllm serve", args: "m -tp 8", over: "--a 1",
			wantCommand: "tini -- vllm serve", want: "m -tp 8 --a 1",
		},
		"InitOfAnother": {
			reason:  "So it is where the engine is not known.",
			command: "tini -- server", args: "m --b 8", over: "--b 1",
			wantCommand: "tini -- server", want: "m --b 1",
		},
		"FlagOfNumactl": {
			reason:  "Programs before the engine have flags of their own.",
			command: "numactl --interleave=all vllm serve", args: "m", over: "--a 1",
			wantCommand: "numactl --interleave=all vllm serve", want: "m --a 1",
		},
		"ValueInArgs": {
			reason:  "A flag may be in command, and its value in args.",
			command: "vllm serve m --a", args: "1 --b", over: "--b",
			wantCommand: "vllm serve m", want: "--a 1 --b",
		},
		"Rest": {
			reason: "What follows -- stays together at the end.",
			args:   "--a 1 -- x --a y", over: "--a 2", want: "--a 2 -- x --a y",
		},
		"OtherRest": {
			reason: "What follows -- replaces what followed it.",
			args:   "--a 1 -- x", over: "-- y", want: "--a 1 -- y",
		},
		"Nothing": {
			reason: "No arguments change nothing.",
			args:   "m --a 1 --b", want: "m --a 1 --b",
		},
		"Script": {
			reason:  "A shell would ignore arguments after its script.",
			command: "bash -c", args: "vllm_serve_m", over: "--a",
			err: "it is a shell's script, into which no arguments can be put",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := override(launch.Command{Command: strings.Fields(tc.command), Args: strings.Fields(tc.args)}, strings.Fields(tc.over))
			if err != nil || tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("%s\nwant error %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if diff := cmp.Diff([]string{tc.wantCommand, tc.want}, []string{strings.Join(got.Command, " "), strings.Join(got.Args, " ")}); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A parsedLine is what an engine would understand.
type parsedLine struct {
	Leading, Rest []string
	Flags         map[string][]string
}

var (
	anyFlag = regexp.MustCompile(`^(--?)([^=\s]*)([=\s](?s:.*))?$`)
	number  = regexp.MustCompile(`^-(\d+|\d*\.\d+)$`)
)

// understand parses words as engines do, by means of its own.
func understand(words []string) parsedLine {
	p := parsedLine{Flags: map[string][]string{}}
	flag := ""
	for i, w := range words {
		m := anyFlag.FindStringSubmatch(w)
		switch {
		case w == "--":
			p.Rest = words[i:]
			return p
		case len(w) > 1 && m != nil && !number.MatchString(w):
			name, no := m[2], ""
			if m[1] == "--" {
				name = strings.ReplaceAll(name, "_", "-")
				if rest, ok := strings.CutPrefix(name, "no-"); ok && rest != "" {
					name, no = rest, "no-"
				}
			}
			flag = m[1] + name
			p.Flags[flag] = append(p.Flags[flag], "flag:"+no+m[3])
		case flag == "":
			p.Leading = append(p.Leading, w)
		default:
			p.Flags[flag] = append(p.Flags[flag], "value:"+w)
		}
	}
	return p
}

// FuzzOverride shows that an engine understands each flag as the arguments have it, or else as the
// command line had it, and nothing else.
func FuzzOverride(f *testing.F) {
	for _, seed := range [][2]string{
		{"m\n--a=1\n--b\n2", "--a\n3"}, {"--no-x\n-tp\n4\n--\ny", "n\n--x\n-1"}, {"--max_len=1\n--max-len 2", "--max-len"}, {"-\n--no-\n---\n--=", "--=1\n-=\n---"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, under, over string) {
		args, given := words(under), words(over)
		got, err := override(launch.Command{Args: args}, given)
		if err != nil {
			return // A shell's script.
		}
		was, has, is := understand(args), understand(given), understand(got.Args)
		want := parsedLine{Leading: was.Leading, Rest: was.Rest, Flags: was.Flags}
		if has.Leading != nil {
			want.Leading = has.Leading
		}
		if has.Rest != nil {
			want.Rest = has.Rest
		}
		for name, values := range has.Flags {
			want.Flags[name] = values
		}
		if diff := cmp.Diff(want, is); diff != "" {
			t.Errorf("%q over %q is %q\n-want +got:\n%s", given, args, got.Args, diff)
		}
		again, err := override(got, given)
		if diff := cmp.Diff(got, again); err != nil || diff != "" {
			t.Errorf("%q over %q a second time: %v, -first +second:\n%s", given, args, err, diff)
		}
	})
}

func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
