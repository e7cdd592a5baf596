package scheduling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// How a group starts in a cluster.
const (
	starts = iota
	neverStarts
	// partlyStarts never has its second decode replica ready.
	partlyStarts
	// comesAndGoes is ready every other twenty minutes.
	comesAndGoes
)

// A randomLife is a life with random trouble.
type randomLife struct {
	life

	rand *rand.Rand
	// how each group starts in each cluster, and which of them is not ready now.
	how     map[string]int
	unready map[string]bool
	// now is the trouble of each cluster.
	now map[string]int
	all []reservation.ReplicaGroup
	// answered are the groups that have answered in a cluster since they were made there.
	answered map[string]bool
}

func newRandomLife(seed uint64) *randomLife {
	l := &randomLife{rand: rand.New(rand.NewPCG(seed, 9)), how: map[string]int{}, unready: map[string]bool{}, now: map[string]int{}, answered: map[string]bool{}}
	l.policy, l.clusters = v1alpha1.PlacementFailover, []string{"c0", "c1", "c2"}[:2+l.rand.IntN(2)]
	for _, c := range l.clusters {
		for g := range 4 {
			l.how[fmt.Sprint(c, g)] = []int{starts, starts, starts, starts, neverStarts, partlyStarts, comesAndGoes}[l.rand.IntN(7)]
		}
	}
	l.all = numbered(4)
	for i := range l.all {
		if l.rand.IntN(2) == 0 {
			second := key.ReplicaID(fmt.Sprintf("%d/decode/1", i))
			l.all[i].Replicas = append(l.all[i].Replicas, reservation.ReplicaRequest{Name: second, Pods: map[string]int64{"large": 1}})
		}
	}
	if l.rand.IntN(2) == 0 {
		l.size, l.room = tenEach, 30+10*l.rand.IntN(6)
	}
	l.ready, l.trouble, l.groups = l.isReady, l.isTroubled, l.all[:1+l.rand.IntN(4)]
	return l
}

func (l *randomLife) isReady(at, age time.Duration, c string, r key.ReplicaID) bool {
	g, role, _ := strings.Cut(string(r), "/")
	switch how := l.how[c+g]; {
	case how == neverStarts, how == partlyStarts && role == "decode/1":
		return false
	case how == comesAndGoes && (int(at/(20*minute))+int(g[0]))%2 == 0:
		return false
	}
	return age >= 10*minute && !l.unready[c+g]
}

func (l *randomLife) isTroubled(at time.Duration, c *Candidate) {
	since := simNow.Add(at - time.Hour)
	switch l.now[c.Name] {
	case 1:
		c.StopPolicy = v1alpha1.StopDrain
	case 2:
		c.Unreachable, c.Ready = &since, nil
	case 3:
		since = since.Add(time.Hour - time.Second)
		c.Unreachable, c.Ready = &since, nil
	case 4:
		c.Unknown, c.Ready = "unknown", nil
	}
}

// happens changes the service and the clusters.
func (l *randomLife) happens() {
	if l.rand.IntN(40) == 0 {
		l.groups = l.all[:1+l.rand.IntN(4)]
	}
	if l.rand.IntN(30) == 0 {
		l.now[l.clusters[l.rand.IntN(len(l.clusters))]] = []int{0, 0, 0, 1, 2, 3, 4}[l.rand.IntN(7)]
	}
	clear(l.unready)
	if l.rand.IntN(6) == 0 {
		l.unready[fmt.Sprint(l.clusters[l.rand.IntN(len(l.clusters))], l.rand.IntN(4))] = true
	}
	if l.rand.IntN(200) == 0 {
		l.homes = nil
	}
}

// answers tells whether a group really answers in a cluster at a time: each of its roles has a ready replica.
func (l *randomLife) answers(g *reservation.ReplicaGroup, c string, at time.Duration) bool {
	roles := map[string]bool{}
	for _, r := range g.Replicas {
		role := strings.Split(string(r.Name), "/")[1]
		since, exists := l.since[c][r.Name]
		roles[role] = roles[role] || exists && l.isReady(at, at-since, c, r.Name)
	}
	return roles["prefill"] && roles["decode"]
}

func (l *randomLife) exists(g *reservation.ReplicaGroup, c string) bool {
	return slices.ContainsFunc(g.Replicas, func(r reservation.ReplicaRequest) bool { _, is := l.since[c][r.Name]; return is })
}

// TestLives proves that no copy of a group goes that has ever answered, unless one answers in another cluster, whatever
// happens to the clusters and to the record of the homes.
func TestLives(t *testing.T) {
	const step = 10 * minute
	for seed := range uint64(200) {
		l := newRandomLife(seed)
		for range 600 {
			l.happens()
			existed, groups, at := map[string]bool{}, l.groups, l.at+step
			for i := range groups {
				for _, c := range l.clusters {
					id := c + string(groups[i].Name)
					existed[id] = l.exists(&groups[i], c)
					l.answered[id] = l.answered[id] || l.answers(&groups[i], c, at)
				}
			}
			l.next(step)
			for i := range groups {
				elsewhere := slices.ContainsFunc(l.clusters, func(c string) bool { return l.answers(&groups[i], c, at) })
				for _, c := range l.clusters {
					id := c + string(groups[i].Name)
					if !existed[id] || l.exists(&groups[i], c) {
						continue
					}
					if l.answered[id] && !elsewhere {
						t.Fatalf("seed %d, %v: group %s is removed in %s, where it has answered, and answers nowhere else: %v", seed, at, groups[i].Name, c, l.homes)
					}
					delete(l.answered, id)
				}
			}
		}
	}
}
