package cluster

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// supported tells whether all filters are of a type that is known here. A request must not be
// passed on without a filter.
func supported(filters []gatewayv1.HTTPRouteFilter) error {
	for _, f := range filters {
		switch f.Type {
		case gatewayv1.HTTPRouteFilterRequestHeaderModifier, gatewayv1.HTTPRouteFilterResponseHeaderModifier,
			gatewayv1.HTTPRouteFilterURLRewrite, gatewayv1.HTTPRouteFilterRequestRedirect:
		default:
			return fmt.Errorf("filter %s is not known here", f.Type)
		}
	}
	return nil
}

// filterRequest changes a request as filters say.
func filterRequest(r *http.Request, filters []gatewayv1.HTTPRouteFilter, matched *routeMatch) {
	for _, f := range filters {
		if m := f.RequestHeaderModifier; m != nil {
			modify(r.Header, m)
		}
		if w := f.URLRewrite; w != nil {
			if w.Hostname != nil {
				r.Host = string(*w.Hostname)
			}
			setPath(r.URL, replaced(r.URL.EscapedPath(), w.Path, matched))
		}
	}
}

func setPath(u *url.URL, escaped string) {
	if p, err := url.PathUnescape(escaped); err == nil {
		u.Path, u.RawPath = p, escaped
	}
}

// filterResponse changes the header of a response as filters say.
func filterResponse(h http.Header, filters []gatewayv1.HTTPRouteFilter) {
	for _, f := range filters {
		if m := f.ResponseHeaderModifier; m != nil {
			modify(h, m)
		}
	}
}

func modify(h http.Header, m *gatewayv1.HTTPHeaderFilter) {
	for _, s := range m.Set {
		h.Set(string(s.Name), s.Value)
	}
	for _, a := range m.Add {
		h.Add(string(a.Name), a.Value)
	}
	for _, name := range m.Remove {
		h.Del(name)
	}
}

// replaced is a path after its whole, or the prefix that was matched, is replaced.
func replaced(path string, by *gatewayv1.HTTPPathModifier, matched *routeMatch) string {
	switch {
	case by == nil:
		return path
	case by.ReplaceFullPath != nil:
		return *by.ReplaceFullPath
	case by.ReplacePrefixMatch == nil || matched.kind != prefixPath:
		return path
	}
	rest := strings.TrimPrefix(path, matched.prefix)
	if prefix := strings.TrimSuffix(*by.ReplacePrefixMatch, "/"); prefix+rest != "" {
		return prefix + rest
	}
	return "/"
}

// redirect is where a redirect leads, and its status; false if there is none among the filters.
// The request came by a scheme, to a listener of a port.
func redirect(r *http.Request, filters []gatewayv1.HTTPRouteFilter, matched *routeMatch, scheme string, port int) (to string, status int, ok bool) {
	for _, f := range filters {
		if f.RequestRedirect == nil {
			continue
		}
		f := f.RequestRedirect
		u := url.URL{Scheme: ptr.Deref(f.Scheme, scheme), RawQuery: r.URL.RawQuery}
		setPath(&u, replaced(r.URL.EscapedPath(), f.Path, matched))
		switch {
		case f.Port != nil:
			port = int(*f.Port)
		case f.Scheme != nil:
			port = wellKnown[u.Scheme]
		}
		if u.Host = string(ptr.Deref(f.Hostname, gatewayv1.PreciseHostname(hostOf(r)))); port != wellKnown[u.Scheme] {
			u.Host = net.JoinHostPort(u.Host, strconv.Itoa(port))
		}
		return u.String(), ptr.Deref(f.StatusCode, http.StatusFound), true
	}
	return "", 0, false
}

var wellKnown = map[string]int{"http": 80, "https": 443}

// hostOf is the host name that a request is for, without a port.
func hostOf(r *http.Request) string {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(host)
}
