# Hearth: every job has a target; `make help` lists them.
#
#   make run                        build, set up on the first start, and serve
#   make run ARGS="--port 8080"     the same, with options for `hearth serve`
#   make install PREFIX=~/.local    install the program there

.POSIX:

CARGO ?= cargo
PREFIX ?= /usr/local
ARGS ?=
ONLY ?=
PEERS ?= peers
ARCHES ?= amd64 arm64 armhf
BROWSER ?= chromium
SECONDS ?= 60
SCHEDULES ?= 500
SEED ?=
FAULT ?=
# Most tests wait most of the time: for a clock, a disk, a program that starts.
TEST = RUST_TEST_THREADS=$$((3 * $$(getconf _NPROCESSORS_ONLN))) $(CARGO) test --locked
BIN = $(DESTDIR)$(PREFIX)/bin
SHARE = $(DESTDIR)$(PREFIX)/share
INTERLEAVINGS = SCHEDULES="$(SCHEDULES)" $(CARGO) test --locked --features shuttle \
  -p store -p net -p hearth --lib interleavings -- --nocapture

help: ## List the targets (this is also what a bare `make` does)
	@echo 'Usage: make TARGET [ARGS="..."] [PREFIX=/usr/local]'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s%s\n", $$1, $$2 }' Makefile

run: build ## Build the server and run it: the first start sets itself up (ARGS for `hearth serve`)
	@exec ./target/release/hearth serve $(ARGS)

build: tools ## Build the program: target/release/hearth
	$(CARGO) build --release --locked --target-dir target

test: tools ## Run every test that needs nothing but the Rust toolchain
	$(TEST)
	$(INTERLEAVINGS)

interleavings: tools ## Test concurrent code in many orders of its threads (SCHEDULES=500 by each of two schedulers)
	$(INTERLEAVINGS)

test-peers: tools ## Run the tests against programs from PyPI, npm and Debian (with mmdebstrap), which they install (PEERS="library_peers" for some)
	$(CARGO) test --locked --no-fail-fast --test it --test browser -- --ignored --test-threads 1 --nocapture $(PEERS)

check: tools ## Check format, lints, documentation and tests: what must hold before a commit
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	$(CARGO) clippy --locked --all-targets --no-default-features -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --no-deps
	$(TEST)
	$(INTERLEAVINGS)

test-browser: tools ## Test the web page in a real browser (needs Chromium, BROWSER=path for another; the main way in Firefox, and axe-core from npm, too)
	BROWSER="$(BROWSER)" $(CARGO) test --locked --test browser -- --ignored --skip peers

bench: tools ## Measure speed and memory (ONLY="health turns" for some)
	$(CARGO) bench --locked --bench bench -- $(ONLY)

soak: tools ## Run the long fault tests: a crash at each system call, power cut, full disk, overload (FAULT=life/thread/call/1/kill for one)
	FAULT="$(FAULT)" $(CARGO) test --locked --release --test soak -- --ignored --nocapture --skip fuzz::
	$(MAKE) interleavings SCHEDULES=5000

fuzz: tools ## Send broken input to the program for SECONDS=60 (SEED=N repeats it)
	SECONDS="$(SECONDS)" SEED="$(SEED)" $(CARGO) test --locked --release --test soak fuzz:: -- --ignored --nocapture --test-threads 1

install: build ## Install the program, its manual page and its shell completions below PREFIX
	install -d $(BIN) $(SHARE)/man/man1 $(SHARE)/bash-completion/completions \
	  $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	install -m 755 target/release/hearth $(BIN)/hearth
	$(BIN)/hearth man > $(SHARE)/man/man1/hearth.1
	$(BIN)/hearth completions bash > $(SHARE)/bash-completion/completions/hearth
	$(BIN)/hearth completions zsh > $(SHARE)/zsh/site-functions/_hearth
	$(BIN)/hearth completions fish > $(SHARE)/fish/vendor_completions.d/hearth.fish

dist: tools ## Build packages: .deb, .tar.gz and SHA256SUMS in target/dist (ARCHES="amd64 arm64 armhf")
	@CARGO="$(CARGO)" .ci/dist $(ARCHES)

image: ## Make images for containers from the packages: .oci.tar in target/dist (needs mmdebstrap)
	@.ci/image $(ARCHES)

test-dist: ## Install, start, upgrade and remove the packages of `make dist` (root; ONLY="contents install" for some)
	@.ci/test-dist $(ONLY)

clean: ## Remove everything that was built
	rm -rf target

# Says what is missing before a build fails in the middle without a reason: the
# bundled SQLite and the cryptography are compiled from C.
tools:
	@rust=$$(sed -n 's/^rust-version = "1\.\(.*\)"/\1/p' Cargo.toml); \
	$(CARGO) --version 2>/dev/null | \
	  awk -F '[ .]' -v rust="$$rust" '{ new = $$2 > 1 || $$3 >= rust } END { exit !new }' || { \
	  echo "hearth: Rust 1.$$rust or newer is missing. Install it:" >&2; \
	  echo '  Debian 12   sudo apt update && sudo apt install cargo-web' >&2; \
	  echo '  elsewhere   from https://rustup.rs, then open a new shell' >&2; \
	  exit 1; }
	@command -v cc >/dev/null 2>&1 || { \
	  echo 'hearth: a C compiler is missing. Install it:' >&2; \
	  echo '  Debian, Ubuntu, Raspberry Pi OS   sudo apt install build-essential' >&2; \
	  echo '  Fedora                            sudo dnf install gcc' >&2; \
	  echo '  Alpine                            sudo apk add build-base' >&2; \
	  exit 1; }

.PHONY: help run build test interleavings test-peers test-browser check bench soak fuzz install dist image test-dist clean tools
