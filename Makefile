# Lockstep's commands. `make help` lists them.

# The release library and where it goes. FORM=named needs the file on every host and SelectType=select/cons_tres_lockstep;
# FORM=drop-in needs it on the controller only, in a folder of its own that stands before Slurm's in PluginDir.
FORM ?= named
PREFIX ?= /usr/local
SLURM_PLUGINDIR ?= $(firstword $(patsubst %/select_cons_tres.so,%,$(wildcard /usr/lib/*/slurm-wlm/select_cons_tres.so /usr/lib/*/slurm/select_cons_tres.so /usr/lib64/slurm/select_cons_tres.so /usr/local/lib/slurm/select_cons_tres.so)))
ifeq ($(FORM),drop-in)
PLUGINDIR ?= $(PREFIX)/lib/lockstep
PLUGIN = select_cons_tres.so
else ifeq ($(FORM),named)
PLUGINDIR ?= $(SLURM_PLUGINDIR)
PLUGIN = select_cons_tres_lockstep.so
else
$(error FORM is "$(FORM)"; set FORM=named or FORM=drop-in)
endif
LIBRARY = target/release/liblockstep.so
INSTALLED = $(DESTDIR)$(PLUGINDIR)/$(PLUGIN)
BINDIR = $(DESTDIR)$(PREFIX)/bin
MANDIR = $(DESTDIR)$(PREFIX)/share/man/man1
BASHDIR = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSHDIR = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISHDIR = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
# How Lockstep's own library is told from Slurm's file of the same name.
OURS = grep -q 'Lockstep: gangs on neighbouring nodes'

CARGO_DENY_VERSION = 0.20.2

.PHONY: help deps build demo test lint fuzz bench bench-churn bench-scale peers install uninstall clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

deps: ## install what is missing (as root) and bring Slurm's headers
	@.ci/deps

build: deps ## the plugin and the command line, optimised
	cargo build --release --locked

demo: build ## a real Slurm cluster on this machine that places gangs; KEEP=1 leaves it up
	@KEEP=$(KEEP) cargo run --release --locked --quiet --example demo

test: deps lint ## everything, from nothing
	cargo test --locked --no-default-features --lib
	cargo test --locked
	fuzz/run 30
	.ci/install-test

fuzz: ## every text that is read, 30 seconds each; fuzz/run says how to do more
	fuzz/run 30

bench: ## the core's benchmarks
	cargo bench --locked --no-default-features

bench-churn: deps ## jobs come and go in a real slurmctld: stock Slurm and Lockstep side by side, 13 minutes
	cargo run --release --locked --example churn

bench-scale: deps ## 10,240 nodes and 500 gangs in a real slurmctld: stock Slurm, Lockstep, and slurmctld's own part, 12 minutes
	cargo run --release --locked --example scale

peers: deps ## Slurm's own test suite, on stock Slurm and on Lockstep side by side; needs expect
	include/slurm-headers.sh $(CURDIR)/target/slurm-testsuite
	cargo run --locked --example peers -- target/slurm-testsuite/testsuite

lint: deps ## format, clippy, licences
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --all-targets --no-default-features -- -D warnings
	@cargo deny --version 2>/dev/null | grep -q . || cargo install cargo-deny --locked --version $(CARGO_DENY_VERSION)
	cargo deny --locked check licenses bans sources

install: build ## FORM=named|drop-in, with DESTDIR, PREFIX, PLUGINDIR
	@[ -n "$(PLUGINDIR)" ] || { echo "install: Slurm's plugin folder was not found; set PLUGINDIR" >&2; exit 1; }
	@if [ -e "$(INSTALLED)" ] && ! $(OURS) "$(INSTALLED)"; then \
	    echo "install: $(INSTALLED) is Slurm's own; set PLUGINDIR to a folder that stands before it in PluginDir" >&2; exit 1; fi
	install -D -m 644 $(LIBRARY) "$(INSTALLED)"
	install -D -m 755 target/release/lockstep "$(BINDIR)/lockstep"
	install -d "$(MANDIR)" "$(BASHDIR)" "$(ZSHDIR)" "$(FISHDIR)"
	target/release/lockstep generate man "$(MANDIR)"
	target/release/lockstep generate completions bash >"$(BASHDIR)/lockstep"
	target/release/lockstep generate completions zsh >"$(ZSHDIR)/_lockstep"
	target/release/lockstep generate completions fish >"$(FISHDIR)/lockstep.fish"
	@echo "installed $(INSTALLED); docs/install.md says what to set in slurm.conf, lockstep check whether all is well"

uninstall: ## take back what install put there, with the same variables
	@if [ -e "$(INSTALLED)" ] && ! $(OURS) "$(INSTALLED)"; then \
	    echo "uninstall: $(INSTALLED) is Slurm's own and stays" >&2; exit 1; fi
	rm -f "$(INSTALLED)" "$(BINDIR)/lockstep" "$(MANDIR)"/lockstep.1 "$(MANDIR)"/lockstep-*.1
	rm -f "$(BASHDIR)/lockstep" "$(ZSHDIR)/_lockstep" "$(FISHDIR)/lockstep.fish"

clean: ## what was built, and Slurm's headers
	cargo clean
	rm -rf include/slurm-src
