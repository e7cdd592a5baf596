package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// write writes a comparison in a format. all tells to show services that stay, too. The
// formats for programs always have them.
func (c comparison) write(w io.Writer, format string, all bool) error {
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(c)
	case "yaml":
		b, err := yaml.Marshal(c)
		if err != nil {
			return fmt.Errorf("cannot write the plan: %w", err)
		}
		_, err = w.Write(b)
		return err
	}
	b := &strings.Builder{}
	fmt.Fprintln(b, c.headline())
	c.writeServices(b, all)
	c.writePending(b)
	title := ""
	if slices.ContainsFunc(c.Clusters, func(c clusterChange) bool { return c.Overcommitted != "" }) {
		title = "\tWHY"
	}
	fmt.Fprintln(b, "\n  \tCLUSTER\tCHANGE\tFREE BEFORE\tFREE AFTER"+title)
	for _, o := range c.Clusters {
		sign := " "
		if o.changed {
			sign = "~"
		}
		if o.refused || o.short {
			sign = "!"
		}
		fmt.Fprintf(b, "  %s\t%s\t%s\t%s\t%s\t%s\n", sign, o.Name, cmp.Or(o.Change, "-"), cmp.Or(o.Before, "-"), cmp.Or(o.After, "-"), o.Overcommitted)
	}
	return align(w, b.String())
}

// signs show what a change does to a service.
var signs = map[string]string{changeStays: " ", changeMoves: "~", changeChanges: "~", changeNew: "+", changeDeleted: "-", changeRefused: "!", changeNotPlaced: "!"}

func (c comparison) writeServices(b *strings.Builder, all bool) {
	shown := slices.DeleteFunc(slices.Clone(c.Services), func(s serviceChange) bool { return s.Change == changeStays && !all })
	if len(shown) == 0 {
		return
	}
	// The column is for fleets that scale. Others are easier to read without it.
	scaling := slices.ContainsFunc(shown, func(s serviceChange) bool { return len(s.Scaled) > 0 })
	title, next := "", ""
	if scaling {
		title, next = "SCALED ROLES\t", "\t"
	}
	fmt.Fprintf(b, "\n  \tSERVICE\tBEFORE\tAFTER\t%sWHY\n", title)
	refused := map[string]string{}
	for _, s := range shown {
		name := strings.TrimPrefix(s.Namespace+"/"+s.Name, "/")
		before, after := places(s.Before), places(s.After)
		if after == "" && s.Change != changeDeleted && s.Change != changeRefused {
			after = "nowhere"
		}
		if before == "" && s.Change != changeNew && s.Change != changeNotPlaced && s.Change != changeRefused {
			before = "nowhere"
		}
		roles := ""
		if scaling {
			roles = cmp.Or(scaledText(s.Scaled), "-") + next
		}
		reason := strings.Join(s.Why, "\n  \t\t\t\t"+next)
		// A mistake in the Input refuses every service. It would be too long to read in each line.
		if first := refused[reason]; first != "" && s.Change == changeRefused {
			reason = "refused as " + first + " is"
		} else if s.Change == changeRefused {
			refused[reason] = name
		}
		fmt.Fprintf(b, "  %s\t%s\t%s\t%s\t%s%s\n", signs[s.Change], name, cmp.Or(before, "-"), cmp.Or(after, "-"), roles, reason)
	}
}

// places lists where a service runs.
func places(all []placement) string {
	parts := make([]string, 0, len(all))
	for _, p := range all {
		text := p.Cluster
		switch {
		case p.OutOfReach:
			text += " (out of reach)"
		case p.State == v1alpha1.StateLeaving:
			text += " (cannot leave)"
		}
		if p.Assigned != "" {
			text += ": " + p.Assigned
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func (c comparison) writePending(b *strings.Builder) {
	for i, p := range c.Pending {
		if i == 0 {
			fmt.Fprintln(b, "\n  \tPENDING AFTER\tCLUSTER\tWHY")
		}
		fmt.Fprintf(b, "  \t%s\t%s\t%s\n", strings.TrimPrefix(p.Namespace+"/"+p.Name, "/"), p.Cluster, p.Message)
	}
}
