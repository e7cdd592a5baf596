package hostile

import (
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// profiled is a Case of a service with these roles, and of a profile whose workers have this template.
func profiled(name string, template func() object, roles func() list) Case {
	return Case{Name: name, Make: func() *fnv1.RunFunctionRequest {
		req := request(object{"profileName": "p", "roles": roles()})
		in := openInput()
		in["profiles"] = list{object{"name": "p", "roles": list{object{"componentType": "worker", "template": template()}}}}
		req.Input = structOf(in)
		return req
	}}
}

// manyWorkers returns as many workers as a service may have, with this template.
func manyWorkers(template func() object) list {
	return repeat(32, func(i int) any {
		return object{"name": fmt.Sprint("w", i), "componentType": "worker", "template": template()}
	})
}

func profiles() []Case {
	variables := func(n int, prefix string) func() object {
		return func() object {
			return pod(object{"env": repeat(n, named(prefix, object{"value": "a"}))})
		}
	}
	flags := func(n int, prefix string) func() object {
		return func() object {
			return pod(object{"args": repeat(n, func(i int) any { return fmt.Sprintf("--%s%d=a", prefix, i) })})
		}
	}
	return []Case{
		profiled("profile with many variables", variables(1000, "A"), func() list { return manyWorkers(variables(400, "A")) }),
		profiled("profile with many other variables", variables(1000, "A"), func() list { return manyWorkers(variables(400, "B")) }),
		profiled("profile with many flags", flags(1000, "a"), func() list { return manyWorkers(flags(1000, "a")) }),
		profiled("profile with many other flags", flags(1000, "a"), func() list { return manyWorkers(flags(1000, "b")) }),
		profiled("profile that many roles take", variables(1000, "A"), func() list {
			return manyWorkers(func() object { return object{} })
		}),
		profiled("profile over lists in lists", func() object { return object{"spec": deepObject()} }, func() list {
			return list{object{"name": "w", "componentType": "worker", "template": object{"spec": deepObject()}}}
		}),
		profiled("profile with many directives", variables(1, "A"), func() list {
			return manyWorkers(func() object { return pod(object{"env": repeat(400, same(object{"$patch": "delete"}))}) })
		}),
		profiled("profile with a script", func() object { return pod(script("vllm serve m " + text(500_000, "a|b&&"))) }, func() list {
			return manyWorkers(func() object {
				return object{"spec": object{"containers": list{object{"name": "vllm", "args": list{"--a"}}}}}
			})
		}),
	}
}

// deepObject returns objects that are nested as deep as a document may have them.
func deepObject() object {
	o := object{"a": "b"}
	for range 50 {
		o = object{"a": o}
	}
	return o
}
