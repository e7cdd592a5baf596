package cluster

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/profile"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// sizes are what is limited of a ledger: its bytes as the API server has it, those of its JSON, and those of the answers that are
// made of it.
type sizes [3]int

// limits are the limits of sizes, and what says that one is exceeded.
var limits = [...]struct {
	most     int
	exceeded string
}{
	{maxLedger, "the ledger would have %d bytes, and the limit is %d"},
	{reservation.MaxPlain, "the ledger would have %d bytes before it is compressed, and the limit is %d"},
	{maxAnswers, "the answers to services would have %d bytes, and the limit is %d"},
}

// sizeOfAnswers returns the bytes of what the answers say is reserved for some services, as the API server has them.
func sizeOfAnswers(services []reservation.Service) (int, error) {
	total := 0
	for _, part := range reservedAnswers(services).Split() {
		if part == nil {
			continue
		}
		encoded, err := part.Encode()
		if err != nil {
			return 0, err //nolint:wrapcheck // It says what failed.
		}
		total += base64.StdEncoding.EncodedLen(len(encoded))
	}
	return total, nil
}

// reservedAnswers returns what the answers say is reserved for some services.
func reservedAnswers(services []reservation.Service) *profile.Answers {
	all := &profile.Answers{}
	for i := range services {
		all.Reservations = append(all.Reservations, reservationOf(&services[i]))
	}
	return all
}

// Of each limit, what a namespace has is looked at from three quarters on. From seven eighths on, what has more than its share and
// grows stays as it was. The rest is for other namespaces, and for what is noted of grants meanwhile.
const (
	nearlyFull = 6
	nearlyOver = 7
	eighths    = 8
)

// fill reserves what fits the cluster and the ledger. What one tenant requests stops nobody else: if the ledger is nearly full,
// namespaces that have more than their share of it get nothing new.
func (p *ledgerPlan) fill(in *reservation.Input, state *observedState) error {
	if err := p.reserve(in, state); err != nil {
		return err
	}
	var err error
	if in.Heavy, err = p.heavy(nearlyFull, nil); err != nil {
		return err
	}
	if len(in.Heavy) > 0 {
		if err := p.reserve(in, state); err != nil {
			return err
		}
		// Grants that shrink, and each in another way, need more of the ledger than before.
		if in.Frozen, err = p.heavy(nearlyOver, state.ledger.Services); err != nil {
			return err
		}
		if len(in.Frozen) > 0 {
			// Some may be heavy only now, because those that are refused have left them room.
			maps.Copy(in.Heavy, in.Frozen)
			if err := p.reserve(in, state); err != nil {
				return err
			}
		}
	}
	p.refused = slices.Sorted(maps.Keys(in.Heavy))
	full := p.full()
	if full == "" {
		return nil
	}
	if p.notSchedulable == "" {
		p.notSchedulable, p.message = reasonFull, full
	}
	in.Full, in.NotSchedulable, p.refused = true, p.message, nil
	if err := p.reserve(in, state); err != nil {
		return err
	}
	if p.writable() {
		return nil
	}
	// What others give back is free all the same.
	grown, err := p.grown(state.ledger.Services)
	if err != nil {
		return err
	}
	maps.Copy(grown, in.Frozen)
	in.Frozen = grown
	if err := p.reserve(in, state); err != nil {
		return err
	}
	if !p.writable() {
		p.Ledger, p.ledger, p.former = state.ledger.Ledger, state.ledger.compressed, true
	}
	return nil
}

// reserve decides what is granted, and measures what comes of it.
func (p *ledgerPlan) reserve(in *reservation.Input, state *observedState) error {
	p.Result = reservation.Reserve(*in)
	plain, err := p.write()
	if err != nil {
		return err
	}
	p.former = bytes.Equal(p.ledger, state.ledger.compressed)
	answers, err := sizeOfAnswers(p.Services)
	p.sizes = sizes{base64.StdEncoding.EncodedLen(len(p.ledger)), plain, answers}
	return err
}

// write encodes the ledger, and returns its bytes before it is compressed.
func (p *ledgerPlan) write() (plain int, err error) {
	p.ledger, plain, err = reservation.Compress(&p.Ledger)
	return plain, err //nolint:wrapcheck // It says what failed.
}

// full says why the ledger is too large, if so. One that stays as it was is not: that was decided when it was written.
func (p *ledgerPlan) full() string {
	if p.former {
		return ""
	}
	for i, limit := range limits {
		if p.sizes[i] > limit.most {
			return fmt.Sprintf(limit.exceeded, p.sizes[i], limit.most)
		}
	}
	return ""
}

// heavy returns the namespaces that have more than their share of a limit of which some eighths are used. Those that have no more
// than the former services are left out.
func (p *ledgerPlan) heavy(used int, former []reservation.Service) (map[string]bool, error) {
	var over []int
	for i, limit := range limits {
		if p.sizes[i] > limit.most/eighths*used {
			over = append(over, i)
		}
	}
	if len(over) == 0 {
		return nil, nil
	}
	return p.above(former, over, func(i int, each map[string]sizes) int { return shareOf(limits[i].most, p.sizes[i], each, i) })
}

// grown returns the namespaces that have more of any limit than the former services.
func (p *ledgerPlan) grown(former []reservation.Service) (map[string]bool, error) {
	return p.above(former, []int{0, 1, 2}, func(int, map[string]sizes) int { return 0 }) // These are all limits.
}

// above returns the namespaces that have more of some limits than the former services, and than a share of each.
func (p *ledgerPlan) above(former []reservation.Service, of []int, share func(limit int, each map[string]sizes) int) (map[string]bool, error) {
	each, err := byNamespace(p.Services)
	before, unknown := byNamespace(former)
	if err := errors.Join(err, unknown); err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for _, i := range of {
		most := share(i, each)
		for namespace, has := range each {
			if has[i] > max(most, before[namespace][i]) {
				all[namespace] = true
			}
		}
	}
	return all, nil
}

// byNamespace returns the sizes of what each namespace has.
func byNamespace(services []reservation.Service) (map[string]sizes, error) {
	of := map[string][]reservation.Service{}
	for _, s := range services {
		of[s.Namespace] = append(of[s.Namespace], s)
	}
	each := make(map[string]sizes, len(of))
	for namespace, its := range of {
		compressed, plain, err := reservation.Compress(its)
		answers, unencoded := sizeOfAnswers(its)
		if err := errors.Join(err, unencoded); err != nil {
			return nil, err
		}
		each[namespace] = sizes{base64.StdEncoding.EncodedLen(len(compressed)), plain, answers}
	}
	return each, nil
}

// shareOf returns how much of a limit each namespace may have. Those that have less leave the rest to the others. Together they have
// a total. One by one they have more than that, because equal texts compress. A quarter of the limit is for a namespace that comes,
// or as much as each of the others may have.
func shareOf(limit, total int, of map[string]sizes, size int) int {
	sum := 0
	var each []int
	for _, has := range of {
		each = append(each, has[size])
		sum += has[size]
	}
	limit = int(int64(limit) * int64(sum) / int64(max(total, 1)))
	each = append(each, limit/eighths*(eighths-nearlyFull))
	slices.Sort(each)
	for i, n := range each {
		share := limit / (len(each) - i)
		if n > share {
			return share
		}
		limit -= n
	}
	return math.MaxInt
}

// writable tells whether the next call can read the ledger, and answer. If each replica of a service requests less than before, but not
// the same, each has a grant of its own. So requests can make the ledger larger although it takes no grants. Namespaces of which it is so
// keep their grants as they are then.
func (p *ledgerPlan) writable() bool {
	return p.sizes[0] <= maxConfigMap && p.sizes[1] <= reservation.MaxDecompressed && p.sizes[2] <= maxConfigMap
}
