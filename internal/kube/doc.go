/*
Package kube has objects of Kubernetes as protobuf Structs, as Crossplane sends and takes them. It converts between Go
values and Structs, with one encoder for all rendered objects and one decoder for all observed objects. It also looks up
and edits values in Structs, checks what users write for its size and its fields, and makes texts for hashes.

Encoder and decoder follow encoding/json (tags, omitempty, inlined structs, Marshaler and Unmarshaler), with
two differences. The encoder does not go through JSON text, which would be most of the cost
of a call. The decoder reports all problems with their paths, up to MaxProblems, and skips
unknown fields: an XR has Crossplane's own fields, and an observed object may be of a newer
version than the types here.
*/
package kube
