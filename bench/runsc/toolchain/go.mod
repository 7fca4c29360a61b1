// The Go compiler that builds runsc: Debian's is too old for it.
module aquarium.invalid/bench/runsc/toolchain

go 1.19

require golang.org/toolchain v0.0.1-go1.25.14.linux-amd64
