package simulation

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"slices"
	"strconv"
)

// A grantOf is a replica of a service that a cluster has reserved.
type grantOf struct{ cluster, uid, replica string }

// An answersDocument is the part of a cluster's answers that says what is reserved.
type answersDocument struct {
	Reservations []struct {
		UID      string `json:"uid"`
		Replicas []struct {
			Role    string `json:"role"`
			Group   *int   `json:"group"`
			Indexes []int  `json:"indexes"`
		} `json:"replicas"`
	} `json:"reservations"`
}

// noteAnswers notes what a cluster says that it has reserved.
func (w *World) noteAnswers(o *stored) {
	now := map[grantOf]bool{}
	defer func() { w.answered[o.name] = now }()
	cluster, encoded := o.labels["fusioninfer.io/cluster"], text(o.body, "binaryData", "answers")
	if cluster == "" || encoded == "" {
		return
	}
	compressed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return
	}
	z, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return
	}
	plain, err := io.ReadAll(z)
	var answers answersDocument
	if err != nil || json.Unmarshal(plain, &answers) != nil {
		return
	}
	for _, s := range answers.Reservations {
		for _, r := range s.Replicas {
			group := 0
			if r.Group != nil {
				group = *r.Group
			}
			for _, i := range r.Indexes {
				now[grantOf{cluster, s.UID, strconv.Itoa(group) + "/" + r.Role + "/" + strconv.Itoa(i)}] = true
			}
		}
	}
}

// checkAnswered checks that a replica starts in a cluster only while that says that its capacity is reserved. Later the cluster would
// count it as running, whether it was reserved or not.
func (w *World) checkAnswered(o *stored, r *remote) {
	id := replicaOf(object(o.body, "spec", "forProvider", "manifest"))
	for _, reserved := range w.answered {
		if reserved[grantOf{r.name, o.owner, id}] {
			return
		}
	}
	w.violate("answered", slices.Concat(w.about(r), []string{o.name.String()}), "%s started in %s, which does not say that replica %s is reserved", o, r.name, id)
}
