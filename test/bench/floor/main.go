// Package main is the floor: the least that a function on this SDK can do. It
// decodes the request with the SDK's codec and answers with resources that it
// built at its start.
package main

import (
	"context"
	"log"
	"maps"
	"os"

	"github.com/alecthomas/kong"
	"google.golang.org/protobuf/proto"

	"github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
)

// A floor answers a request with the desired state of the same tag.
type floor struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	desired map[string]*fnv1.State
}

// RunFunction returns what was built before.
func (f *floor) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := response.To(req, response.DefaultTTL)
	built := f.desired[req.GetMeta().GetTag()]
	rsp.Desired = &fnv1.State{Composite: built.GetComposite(), Resources: maps.Clone(built.GetResources())}
	return rsp, nil
}

// commands are the flags that every function has, and the answers: files with one
// RunFunctionResponse each.
type commands struct {
	Address            string   `default:":9443" help:"Address at which to listen."`
	Insecure           bool     `help:"Serve without mTLS."`
	MaxRecvMessageSize int      `default:"64" help:"Largest request to accept, in MiB."`
	Answers            []string `arg:"" help:"Answers to give, by the tag of the request."`
}

func main() {
	c := &commands{}
	kong.Parse(c)
	f := &floor{desired: map[string]*fnv1.State{}}
	for _, path := range c.Answers {
		if err := f.load(path); err != nil {
			log.Fatalf("cannot load %s: %v", path, err)
		}
	}
	if err := function.Serve(f,
		function.Listen("tcp", c.Address),
		function.Insecure(c.Insecure),
		function.MaxRecvMessageSize(c.MaxRecvMessageSize*1024*1024),
		function.WithMetricsServer("")); err != nil {
		log.Fatal(err)
	}
}

func (f *floor) load(path string) error {
	b, err := os.ReadFile(path) //nolint:gosec // The bench wrote it.
	if err != nil {
		return err
	}
	rsp := &fnv1.RunFunctionResponse{}
	if err := proto.Unmarshal(b, rsp); err != nil {
		return err
	}
	f.desired[rsp.GetMeta().GetTag()] = rsp.GetDesired()
	return nil
}
