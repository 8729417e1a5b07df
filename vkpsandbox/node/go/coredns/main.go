// CoreDNS with the plugins that an ordinary Node of a sandbox needs, by way of
// https://coredns.io/2017/07/25/compile-time-enabling-or-disabling-plugins/: with all of them it is six times as large.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func init() {
	dnsserver.Directives = []string{"bind", "health", "errors", "cache", "kubernetes"}
}

func main() {
	coremain.Run()
}
