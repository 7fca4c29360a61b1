//go:build pinned

// Package runsc names the program that bench/setup builds, so that go.mod and go.sum pin it.
package runsc

import _ "gvisor.dev/gvisor/runsc"
