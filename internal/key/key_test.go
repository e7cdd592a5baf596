package key

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   Key
	}{
		"One":     {reason: "Some kinds have only one object.", text: "podgroup", want: Key{Kind: "podgroup"}},
		"Replica": {reason: "A replica's name has its role and index.", text: "leaderworkerset/decode/0", want: Key{Kind: "leaderworkerset", Name: "decode/0"}},
		"Grouped": {reason: "A replica of a service with spec.replicas has a group.", text: "leaderworkerset/1/decode/0", want: Key{Kind: "leaderworkerset", Name: "1/decode/0"}},
		"Remote":  {reason: "An object in another cluster.", text: "cluster/east/deployment/epp", want: Key{Cluster: "east", Kind: "deployment", Name: "epp"}},
		"Slice":   {reason: "A slice of the fleet route.", text: "endpointslice/fleet6/east", want: FleetSlice("east", true)},
		"Nothing": {reason: "An empty text does not panic.", text: "", want: Key{}},
		"Cut off": {reason: "A key that is cut off does not panic.", text: "cluster/", want: Key{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Parse(tc.text)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFleetKeys proves that the keys of the fleet route's backends differ from all others.
func TestFleetKeys(t *testing.T) {
	cases := map[string]struct {
		reason         string
		key            Key
		backend, slice bool
		hostname       HostnameBackend
	}{
		"Service":       {reason: "The Service of the fleet route stands for an entrypoint.", key: FleetService("east"), backend: true},
		"Slice":         {reason: "The slice has an IPv4 address.", key: FleetSlice("east", false), slice: true},
		"SliceOfIPv6":   {reason: "The slice has an IPv6 address.", key: FleetSlice("east", true), slice: true},
		"FQDN":          {reason: "The slice has the DNS name, and the route references the Service.", key: HostnameSlice.Backend("east"), backend: true},
		"SliceOfFQDN":   {reason: "The slice has the DNS name.", key: HostnameSlice.Slice("east"), hostname: HostnameSlice},
		"ExternalName":  {reason: "The Service has the DNS name.", key: HostnameExternal.Backend("east"), backend: true, hostname: HostnameExternal},
		"ServiceEntry":  {reason: "The ServiceEntry has the DNS name.", key: HostnameEntry.Backend("east"), backend: true, hostname: HostnameEntry},
		"EntryAsOther":  {reason: "No Service has the key of a ServiceEntry.", key: New("", Service, string(HostnameEntry), "east")},
		"OwnService":    {reason: "A service's own Service selects its pods.", key: New("", Service, "epp")},
		"RemoteService": {reason: "Nothing in another cluster belongs to the fleet route.", key: New("east", Service, "fleet", "east")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := Parse(tc.key.String())
			if got := k.IsFleetBackend(); got != tc.backend {
				t.Errorf("%s A backend of the fleet route: want %t, got %t", tc.reason, tc.backend, got)
			}
			if cluster, got, is := k.FleetHostnameOf(); is && (got != tc.hostname || cluster != "east") || is != (tc.hostname != "") {
				t.Errorf("%s It has the DNS name of %q by %q: %t, want %q", tc.reason, cluster, got, is, tc.hostname)
			}
			if _, _, got := k.FleetSliceOf(); got != tc.slice {
				t.Errorf("%s A slice of the fleet route: want %t, got %t", tc.reason, tc.slice, got)
			}
		})
	}
}

// FuzzKey proves that Parse is the inverse of String for keys whose parts have no '/'.
func FuzzKey(f *testing.F) {
	f.Add("east", "leaderworkerset", "decode", "0")
	f.Add("", "podgroup", "", "")
	f.Fuzz(func(t *testing.T, cluster, kind, role, index string) {
		for _, s := range []string{cluster, kind, role, index} {
			for _, r := range s {
				if r == '/' {
					t.Skip("parts must not have a '/'")
				}
			}
		}
		if kind == "" || kind == "cluster" {
			t.Skip("a key has a kind, and none is named cluster")
		}
		k := New(cluster, kind, role, index)
		if diff := cmp.Diff(k, Parse(k.String())); diff != "" {
			t.Errorf("%q: -want +got:\n%s", k.String(), diff)
		}
	})
}

// TestGroup proves that a group has an index, or is a replica by itself.
func TestGroup(t *testing.T) {
	if i, ok := GroupOf(7).Index(); !ok || i != 7 {
		t.Errorf("GroupOf(7).Index() = %d, %t", i, ok)
	}
	alone := ReplicaOf("decode", 1)
	if i, ok := GroupID(alone).Index(); ok {
		t.Errorf("the group of %s has the index %d", alone, i)
	}
}

func TestReplicaParts(t *testing.T) {
	type parts struct {
		Group int32
		Role  string
		Index int32
		OK    bool
	}
	cases := map[string]struct {
		reason  string
		replica ReplicaID
		want    parts
	}{
		"Ungrouped": {reason: "The usual service.", replica: ReplicaOf("decode", 3), want: parts{Role: "decode", Index: 3, OK: true}},
		"Grouped":   {reason: "A service with spec.replicas.", replica: ReplicaInGroup(2, "decode", 3), want: parts{2, "decode", 3, true}},
		"Number":    {reason: "The name of a role may be a number.", replica: ReplicaOf("1", 0), want: parts{Role: "1", OK: true}},
		"Padded":    {reason: "An index has no leading zeros.", replica: "decode/03"},
		"Negative":  {reason: "An index is not negative.", replica: "decode/-1"},
		"NoRole":    {reason: "Each replica has a role.", replica: "/0"},
		"TooMany":   {reason: "A replica has at most three parts.", replica: "0/0/decode/0"},
		"Nothing":   {reason: "An empty text is not a replica.", replica: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := parts{}
			got.Group, got.Role, got.Index, got.OK = tc.replica.Parts()
			if !got.OK {
				got = parts{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
