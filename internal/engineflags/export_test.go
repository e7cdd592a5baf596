package engineflags

// ReadNewest reads words as the newest release or main branch of the table does, and no other.
func (t *Table) ReadNewest(words []string) *Line {
	return t.read(words, window{releases: 1 << (len(t.releases) - 1), certain: true, complete: true, shown: "newest"})
}
