package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
	"github.com/fusioninfer/function-inferenceservice/test/controlplane/dashboard"
)

// pictures draws the dashboards of files, with what the Prometheus of the control plane knows, and says where they are and which
// panels have no data.
func (s state) pictures(args []string) error {
	to, during, variables := "", 10*time.Minute, settings{}
	flags := flag.NewFlagSet("pictures", flag.ContinueOnError)
	flags.StringVar(&to, "to", s.file("pictures"), "`directory` of the pictures")
	flags.DurationVar(&during, "during", during, "how much `time` until now they show")
	flags.Var(variables, "set", "value of a dashboard's variable, such as `namespace=team-a`; can be repeated")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("no dashboard is named, such as package/monitoring/dashboards/service.json")
	}
	b, err := os.ReadFile(s.file("prometheus.txt"))
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("there is no Prometheus: start the control plane with --autoscaling, as make demo-scaling does")
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	now := time.Now()
	for _, file := range flags.Args() {
		d, err := dashboard.Read(file)
		if err != nil {
			return err
		}
		t := dashboard.Period{Start: now.Add(-during), End: now, Scrape: cluster.ScrapeInterval}
		if err := d.Ask(context.Background(), strings.TrimSpace(string(b)), variables, t); err != nil {
			return err
		}
		picture := filepath.Join(to, strings.TrimSuffix(filepath.Base(file), ".json")+".png")
		if err := draw(d, t, picture); err != nil {
			return err
		}
		without := ""
		if empty := d.Empty(); len(empty) > 0 {
			without = " (without data: " + strings.Join(empty, ", ") + ")"
		}
		fmt.Printf("%s%s\n", picture, without)
	}
	return nil
}

func draw(d *dashboard.Dashboard, t dashboard.Period, file string) error {
	f, err := os.Create(file) //nolint:gosec // The one that was asked for.
	if err != nil {
		return err
	}
	return errors.Join(d.Draw(f, t), f.Close())
}

// settings are flags such as name=value.
type settings map[string]string

// String is that of flag.Value.
func (s settings) String() string { return "" }

// Set adds one.
func (s settings) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return fmt.Errorf("%q is not such as namespace=team-a", text)
	}
	s[name] = value
	return nil
}
