package cluster

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// maxBody is the longest body of a request to a pool.
const maxBody = 64 << 20

func headerMap(h http.Header, pseudo ...string) *corev3.HeaderMap {
	m := &corev3.HeaderMap{}
	for i := 0; i < len(pseudo); i += 2 {
		m.Headers = append(m.Headers, &corev3.HeaderValue{Key: pseudo[i], RawValue: []byte(pseudo[i+1])})
	}
	for name, values := range h {
		m.Headers = append(m.Headers, &corev3.HeaderValue{Key: strings.ToLower(name), RawValue: []byte(strings.Join(values, ","))})
	}
	return m
}

// mutateHeaders changes headers. Unless a value is to be appended, it replaces those that are there.
func mutateHeaders(h http.Header, m *extprocv3.HeaderMutation, pseudo func(name, value string)) {
	for _, name := range m.GetRemoveHeaders() {
		h.Del(name)
	}
	for _, o := range m.GetSetHeaders() {
		name, value := o.GetHeader().GetKey(), string(o.GetHeader().GetRawValue())
		if value == "" {
			value = o.GetHeader().GetValue()
		}
		has := h.Get(name) != ""
		switch {
		case strings.HasPrefix(name, ":"):
			pseudo(name, value)
		case o.GetAppend().GetValue(): //nolint:staticcheck // Pickers may still use it.
			h.Add(name, value)
		case o.GetAppendAction() == corev3.HeaderValueOption_ADD_IF_ABSENT && has,
			o.GetAppendAction() == corev3.HeaderValueOption_OVERWRITE_IF_EXISTS && !has,
			strings.EqualFold(name, "Content-Length"):
		default:
			h.Set(name, value)
		}
	}
}

func setPseudo(r *http.Request, name, value string) {
	switch name {
	case ":path":
		if u, err := url.ParseRequestURI(value); err == nil {
			r.URL.Path, r.URL.RawPath, r.URL.RawQuery = u.Path, u.RawPath, u.RawQuery
		}
	case ":authority":
		r.Host = value
	case ":method":
		r.Method = value
	}
}

// readBody reads the body of a request, which pickers want to have whole.
func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err == nil && len(b) > maxBody {
		err = errors.New("the body of the request is too long")
	}
	return b, err
}

func setBody(r *http.Request, body []byte) {
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	r.Header.Del("Content-Length")
	if len(body) == 0 {
		r.Body = http.NoBody
	}
}
