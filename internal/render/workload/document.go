package workload

import "github.com/fusioninfer/function-inferenceservice/internal/kube"

// clone copies a document, so that it can be changed. It leaves nulls out: they
// mean absent, but in server-side apply they would take the field.
func clone(d kube.Document) kube.Document {
	c := make(kube.Document, len(d))
	for k, v := range d {
		if v != nil {
			c[k] = cloneValue(v)
		}
	}
	return c
}

func cloneValue(v any) any {
	switch t := v.(type) {
	case kube.Document:
		return clone(t)
	case []any:
		l := make([]any, len(t))
		for i, e := range t {
			l[i] = cloneValue(e)
		}
		return l
	}
	return v
}

// child returns an object inside a document, which is made if it is missing.
func child(d kube.Document, field string) kube.Document {
	if c, ok := d[field].(kube.Document); ok {
		return c
	}
	c := kube.Document{}
	d[field] = c
	return c
}

// elements returns a list inside a document, or nil.
func elements(d kube.Document, field string) []any {
	l, _ := d[field].([]any)
	return l
}
