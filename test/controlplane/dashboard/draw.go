package dashboard

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Sizes of a picture. A pixel is 0.75 points.
const (
	pixel  = vg.Length(0.75)
	column = 50 * pixel
	row    = 30 * pixel
	gap    = 8 * pixel
	header = 2 * row
	line   = 16 * pixel
)

var (
	background = color.RGBA{0xf4, 0xf5, 0xf5, 0xff}
	ink        = color.RGBA{0x24, 0x29, 0x2e, 0xff}
	faint      = color.RGBA{0xdd, 0xdf, 0xe1, 0xff}
	// colors differ in brightness, too.
	colors = []color.Color{
		color.RGBA{0x1f, 0x60, 0xc4, 0xff}, color.RGBA{0xe0, 0x6c, 0x00, 0xff}, color.RGBA{0x37, 0x87, 0x2d, 0xff}, color.RGBA{0xc4, 0x16, 0x2a, 0xff},
		color.RGBA{0x8f, 0x3b, 0xb8, 0xff}, color.RGBA{0xb0, 0x8a, 0x00, 0xff}, color.RGBA{0x00, 0x8a, 0x8a, 0xff}, color.RGBA{0x6e, 0x6e, 0x6e, 0xff},
	}
)

// Draw writes a picture of all panels as a PNG. Ask has to come first.
func (d *Dashboard) Draw(w io.Writer, t Period) error {
	rows := 0
	for _, p := range d.Panels {
		rows = max(rows, p.GridPos.Y+p.GridPos.H)
	}
	width, height := 24*column, header+vg.Length(rows)*row
	image := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(96), vgimg.UseBackgroundColor(background))}
	all := draw.New(image)
	write(all, d.Title, gap, height-row, 18)
	write(all, t.Start.UTC().Format("2006-01-02 15:04")+" to "+t.End.UTC().Format("15:04 UTC"), gap, height-header+gap, 10)
	for _, p := range d.Panels {
		left, top := vg.Length(p.GridPos.X)*column, height-header-vg.Length(p.GridPos.Y)*row
		right, bottom := left+vg.Length(p.GridPos.W)*column, top-vg.Length(p.GridPos.H)*row
		at := draw.Canvas{Canvas: all.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: left, Y: bottom}, Max: vg.Point{X: right, Y: top}}}
		if err := p.draw(at, t); err != nil {
			return fmt.Errorf("panel %q: %w", p.Title, err)
		}
	}
	if _, err := image.WriteTo(w); err != nil {
		return fmt.Errorf("cannot write a picture: %w", err)
	}
	return nil
}

func (p *Panel) draw(at draw.Canvas, t Period) error {
	if p.Type == typeRow {
		write(at, p.Title, at.Min.X+gap, at.Min.Y+gap, 13)
		return nil
	}
	at = draw.Crop(at, gap/2, -gap/2, gap/2, -gap/2)
	at.SetColor(color.White)
	at.Fill(at.Rectangle.Path())
	at = draw.Crop(at, gap, -gap, gap, -gap)
	write(at, p.Title, at.Min.X, at.Max.Y-line, 11)
	body := draw.Crop(at, 0, 0, 0, -1.5*line)
	switch {
	case !slices.ContainsFunc(p.Series, Series.hasValue):
		write(body, "No data", body.Center().X-2*line, body.Center().Y, 11)
		return nil
	case p.Type == typeTimeSeries:
		return p.lines(body, t)
	}
	p.list(body)
	return nil
}

// list writes values below each other: those of a stat with their names, and those of a table as rows.
func (p *Panel) list(at draw.Canvas) {
	size := 10.0
	if p.Type == typeStat {
		size = 22
	}
	y := at.Max.Y
	for _, s := range p.Series {
		if y -= vg.Points(1.6 * size); y < at.Min.Y {
			return
		}
		name := s.Name
		if p.Type == typeStat {
			name += "  " + shown(p.FieldConfig.Defaults.Unit, float64(s.Points[0].Value))
		}
		write(at, name, at.Min.X, y, size)
	}
}

// lines draws the series over time, and their names below.
func (p *Panel) lines(at draw.Canvas, t Period) error {
	names := p.legend(at)
	g := plot.New()
	g.X.Tick.Marker = minutes{}
	g.Y.Tick.Marker = unit(p.FieldConfig.Defaults.Unit)
	for _, a := range []*plot.Axis{&g.X, &g.Y} {
		a.LineStyle.Color, a.Tick.LineStyle.Color = faint, faint
		a.Tick.Label.Font.Size, a.Tick.Label.Font.Variant, a.Tick.Label.Color = vg.Points(8), "Sans", ink
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = faint, faint
	g.Add(grid)
	g.Y.Min, g.Y.Max = 0, 0
	for i, s := range p.Series {
		for _, part := range connected(s.Points, t) {
			l, err := plotter.NewLine(part)
			if err != nil {
				return fmt.Errorf("cannot draw %s: %w", s.Name, err)
			}
			l.Color, l.Width = colors[i%len(colors)], vg.Points(1.2)
			g.Add(l)
		}
	}
	if g.Y.Max == 0 {
		g.Y.Max = 1
	}
	g.Y.Max *= 1.05
	g.X.Min, g.X.Max = seconds(t.Start), seconds(t.End)
	g.Draw(draw.Crop(at, 0, 0, names, 0))
	return nil
}

// legend writes the names of the series at the bottom, and returns how high that is.
func (p *Panel) legend(at draw.Canvas) vg.Length {
	style := face(9)
	type entry struct {
		series  int
		x, line vg.Length
	}
	var entries []entry
	x, lines := vg.Length(0), vg.Length(1)
	for i, s := range p.Series {
		width := style.Width(s.Name) + 2*line
		if x > 0 && x+width > at.Max.X-at.Min.X {
			x, lines = 0, lines+1
		}
		entries = append(entries, entry{i, x, lines})
		x += width
	}
	for _, e := range entries {
		y := at.Min.Y + (lines-e.line)*line
		at.SetColor(colors[e.series%len(colors)])
		mark := vg.Rectangle{Min: vg.Point{X: at.Min.X + e.x, Y: y + line/4}, Max: vg.Point{X: at.Min.X + e.x + line/2, Y: y + line/2}}
		at.Fill(mark.Path())
		write(at, p.Series[e.series].Name, at.Min.X+e.x+line*3/4, y, 9)
	}
	return lines*line + gap
}

// connected are the parts of a line that have a value at each point. NaN is none.
func connected(all []model.SamplePair, t Period) []plotter.XYs {
	far := 2 * max(t.End.Sub(t.Start)/points, t.Scrape)
	var parts []plotter.XYs
	var last time.Time
	for _, s := range all {
		v, at := float64(s.Value), s.Timestamp.Time()
		if !isValue(v) {
			continue
		}
		if len(parts) == 0 || at.Sub(last) > far {
			parts = append(parts, nil)
		}
		n := len(parts) - 1
		parts[n], last = append(parts[n], plotter.XY{X: seconds(at), Y: v}), at
	}
	return parts
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// minutes marks full minutes, seven at most.
type minutes struct{}

// Ticks are the marks between two times in seconds.
func (minutes) Ticks(from, to float64) []plot.Tick {
	step := 60 * math.Max(1, math.Ceil((to-from)/60/6))
	var all []plot.Tick
	for at := math.Ceil(from/step) * step; at <= to; at += step {
		all = append(all, plot.Tick{Value: at, Label: time.Unix(int64(at), 0).UTC().Format("15:04")})
	}
	return all
}

// A unit marks values as Grafana shows its units.
type unit string

// Ticks are the marks between two values.
func (u unit) Ticks(least, most float64) []plot.Tick {
	scale := 1.0
	if u == "bytes" {
		scale = 1 << 20
	}
	all := plot.DefaultTicks{}.Ticks(least/scale, most/scale)
	for i := range all {
		all[i].Value *= scale
		if all[i].Label != "" {
			all[i].Label = shown(string(u), all[i].Value)
		}
	}
	return all
}

// shown is a value in a unit of Grafana's.
func shown(unit string, v float64) string {
	switch unit {
	case "percentunit":
		return digits(100*v) + " %"
	case "bytes":
		return digits(v/(1<<20)) + " MiB"
	case "s":
		if v < 1 {
			return digits(1000*v) + " ms"
		}
		return digits(v) + " s"
	case "reqps", "ops":
		return digits(v) + "/s"
	}
	return digits(v)
}

// digits is a value with at most three digits behind the point.
func digits(v float64) string { return strconv.FormatFloat(math.Round(1000*v)/1000, 'f', -1, 64) }

// face is how text is written.
func face(size float64) text.Style {
	sans := plot.DefaultFont
	sans.Variant = "Sans"
	return text.Style{Handler: plot.DefaultTextHandler, Font: font.From(sans, vg.Points(size)), Color: ink, XAlign: text.XLeft, YAlign: text.YBottom}
}

// write writes text whose lower left corner is at a point.
func write(at draw.Canvas, what string, x, y vg.Length, size float64) {
	at.FillText(face(size), vg.Point{X: x, Y: y}, what)
}
