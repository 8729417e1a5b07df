# Everything runs in .venv, which the first target makes. Needed: Python 3.11 or later, make, the network.
# `make` lists the targets.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST := $(BIN)/pytest -p no:cacheprovider
CONTAINER = $(if $(shell command -v podman),podman,docker)
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
# Helm names a chart's archive by the version as semver has it: 0.2.0-dev.0 where Python has 0.2.0.dev0.
CHART = vkprovider-$(shell sed -n 's/^version: //p' manifests/helm/vkprovider/Chart.yaml).tgz
IMAGE = vkprovider:$(VERSION)
# Of `make workbench`. KUBECTL names a program, or else it is downloaded and has the sum KUBECTL_SHA256.
WORKBENCH = vkprovider-workbench:$(VERSION)
KUBECTL =
KUBECTL_SHA256 = $(if $(KUBECTL),$(firstword $(shell sha256sum $(KUBECTL))))
# Of `make base`: the same Python as that of the official image, from Debian.
BASE = localhost/vkprovider-base:bookworm
MIRROR =
# Processes of `make test`, each with a sandbox of its own (1.5 GB): half of a cluster test is waiting, so five of them
# keep two cores busy. Files run in the order of tests/conftest.py.
JOBS ?= 5
SPREAD = -n $(JOBS) --dist loadfile --no-loadscope-reorder
# Fault suites that measure times, and so have the machine for themselves.
ALONE = $(addprefix tests/faults/test_,mux_owner.py portal_silence.py upgrade.py)
# Of `make matrix`: the versions that tools/matrix pins.
MATRIX = $(sort $(notdir $(wildcard tools/matrix/1.*)))
LOCK = uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11 --constraint constraints.txt
# What `make matrix` runs: all that meets a whole cluster, and what the API server itself makes of what is installed and
# stored.
ON_APISERVER = tests/component/manifests $(addprefix tests/component/controllers/test_,content_versions.py claimstore.py generations.py)
ON_OLDER = tests/cluster $(ON_APISERVER) $(addprefix tests/acceptance/test_,sandbox_*.py behind_nat.py demo_*.py \
  docs_commands.py helm_release.py hub.py install.py moving.py)
# It downloads the pinned version, whichever one the others run on.
NOT_ON_OLDER = --deselect=tests/acceptance/test_demo_command.py::test_demo_runs_on_programs_that_it_downloads
ONLY_K = $(if $(ONLY),-k '$(ONLY)')
export PYTHON INSTALL VENV

.DEFAULT_GOAL := help
.PHONY: help install demo test tests unit late component simulators acceptance coverage judges hub spawner check fix generate vendor recording pictures site figures faults node tunnelled matrix rights bench contract wheel plugin helm chart release version lock sbom image workbench base clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

install: $(STAMP) ## Make .venv with everything that development needs

$(STAMP): pyproject.toml constraints.txt
	@sh .ci/setup venv
	@touch $@

demo: $(STAMP) ## Show a Deployment of lablets from start to finish; CLASS=1 the day of a class (LDS=0 without an LDS); MUX=1 one address for 30 lablets; PORTAL=1 a lab on request; HUB=1 that with a browser and a JupyterHub; DOWNLOAD=1 downloads Kubernetes instead of building it, KEEP=1 leaves it running, NAME=other beside one that runs, TUNNEL=http or mqtt
	@$(if $(DOWNLOAD),,sh .ci/setup go)
	@$(if $(HUB),sh .ci/setup hub)
	@$(BIN)/vkprovider demo $(if $(CLASS),--class) $(if $(MUX),--mux) $(if $(PORTAL),--portal) $(if $(HUB),--hub) $(if $(filter 0,$(LDS)),--no-lds) $(if $(DOWNLOAD),--download) $(if $(KEEP),--keep) $(if $(NAME),--name $(NAME)) $(if $(TUNNEL),--tunnel $(TUNNEL))

# What a run needs that it can get by itself.
READY = sh .ci/setup needs && $(MAKE) --no-print-directory --silent $(STAMP) && $(MAKE) --no-print-directory --silent judges && sh .ci/setup hub
# Built beforehand, where there can be an ordinary Node: no test waits for a build.
NODE_PROGRAMS = [ -n "$$($(BIN)/python -c 'from vkpsandbox.node.needs import missing; print(missing())')" ] || $(BIN)/vkprovider sandbox build --node >/dev/null
# Where CI is set, a skip that tests/skips.txt does not name fails the run.
GUARDED = --again=10 $(if $(CI),--skips=tests/skips.txt)

test: ## Check, beside unit, component and cluster tests, and those of the simulators if they changed; ONLY=name: those with that in their name, unchecked; INSTALL=1: get what is missing
	@$(READY)
	@$(MAKE) --no-print-directory -j2 $(if $(ONLY),,check) tests

tests: $(STAMP)
	@$(PYTEST) tests/unit tests/component $$($(BIN)/python -m tools.changed) tests/cluster $(SPREAD) $(GUARDED) --record=build/tests/test.tsv --session-timeout=4800 $(ONLY_K)

unit: $(STAMP) ## Unit tests: two minutes
	@$(PYTEST) tests/unit $(SPREAD) --session-timeout=600 $(ONLY_K)

late: ## Unit tests at 23:50 on the last day of a month, by libfaketime; ONLY=name as elsewhere
	@sh .ci/setup needs && $(MAKE) --no-print-directory --silent $(STAMP)
	@$(BIN)/python -m tests.support.clocks $(PYTEST) tests/unit $(SPREAD) --session-timeout=1200 $(ONLY_K)

component: ## Component tests: shells against simulators, controllers in process on a real API server, pages in a browser
	@$(READY)
	@$(PYTEST) tests/component $(SPREAD) $(GUARDED) --session-timeout=1800 $(ONLY_K)

simulators: $(STAMP) ## Tests of the simulators themselves, judged by clients of others: two minutes; ONLY=name as elsewhere
	@sh .ci/setup judges
	@$(PYTEST) tests/simulators $(SPREAD) $(GUARDED) --session-timeout=900 $(ONLY_K)

acceptance: ## What proves a release: the simulators, demos, installation, Helm, wheels, hub, releases of CML, tunnels, and three fault suites alone after the rest; ONLY=name as elsewhere
	@$(READY)
	@$(MAKE) --no-print-directory helm
	@$(NODE_PROGRAMS)
	@$(BIN)/python -c 'from tests.support.distribution import program; program()'
	@$(PYTEST) tests/simulators tests/acceptance $(SPREAD) $(GUARDED) --record=build/tests/acceptance.tsv --session-timeout=2100 $(ONLY_K)
	@$(PYTEST) $(ALONE) $(GUARDED) --record=build/tests/alone.tsv --session-timeout=900 $(ONLY_K)

coverage: $(STAMP) ## Line coverage of controllers, runtime, mux and portal by the tests of `make test`, the processes of sandboxes included; ONLY=name as elsewhere
	@$(READY)
	@$(PYTEST) tests/unit tests/component tests/cluster -q $(SPREAD) --cov --cov-report=term-missing:skip-covered $(ONLY_K)

judges: $(STAMP) ## Install the programs of others that judge the CML simulator and pages, in .venv/judges
	@sh .ci/setup judges

# `make acceptance` runs them too.
hub: $(STAMP) ## Install JupyterHub with its proxy in .venv/hub, and run all tests of hub/; ONLY=name as elsewhere
	@sh .ci/setup hub
	@$(VENV)/hub/bin/pytest hub/tests $(ONLY_K)

check: $(STAMP) ## Lint, format, types, import contracts, generated files, workflows of CI, the site with all its links
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	@echo '$(BIN)/lint-imports'; $(BIN)/lint-imports --no-logo 2>&1 || { $(BIN)/lint-imports; exit 1; }
	$(BIN)/python -m tools.generate --check
	$(BIN)/python -m tools.render --check
	$(BIN)/python -m tools.vendor --check
	@sh .ci/setup actionlint
	$(BIN)/python -m tools.workflows.check
	@$(MAKE) --no-print-directory site

fix: $(STAMP) ## Repair what ruff can, and format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

generate: $(STAMP) ## Write CRDs, reference pages, install.yaml and the Helm chart from the code
	$(BIN)/python -m tools.generate
	$(BIN)/python -m tools.render

vendor: $(STAMP) ## Fetch by npm what the site serves of others, as tools/vendor/packages.toml pins it
	$(BIN)/python -m tools.vendor

recording: $(STAMP) ## Record a run of each demo, and draw it: docs/pictures/demo.cast, class.cast and .svg; ONLY=class records one
	@sh .ci/setup go
	@$(BIN)/python -m tools.recording $(ONLY)
	@$(BIN)/python -m tools.generate

pictures: $(STAMP) ## Take pictures of the portal on a sandbox, in Chromium and at terminals (needs ssh, tcpdump): docs/pictures
	@sh .ci/setup go
	@$(BIN)/python -m tools.pictures
	@$(BIN)/python -m tools.generate

site: $(STAMP) ## Build the site of the documentation in build/site; a link that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

figures: $(STAMP) ## Figures of the code's structure, of the checkout or of a revision: REV=main
	@$(BIN)/python -m tools.figures $(REV)

faults: $(STAMP) ## The long fault scenarios, with their figures; ONLY=name runs those whose name contains it
	@sh .ci/setup go
	@$(PYTEST) tests/faults -v -rP $(ONLY_K)

node: ## Everything as Pods of an ordinary Node, installed as users do: probes, policies, memory; needs root and podman; ONLY=name as elsewhere
	@$(READY)
	@sh .ci/setup node
	@$(MAKE) --no-print-directory helm
	@$(NODE_PROGRAMS)
	@$(PYTEST) tests/node -v -rP $(GUARDED) --session-timeout=3600 $(ONLY_K)

tunnelled: $(STAMP) ## The cluster tests of main job, ports, sessions and replicas over mqtt and http; TUNNEL=http for one
	@sh .ci/setup go
	@for way in $(or $(TUNNEL),mqtt http); do $(PYTEST) tests/cluster -m tunnelled --tunnel=$$way $(SPREAD) $(ONLY_K) || exit; done

matrix: ## What meets Kubernetes, on the versions that tools/matrix pins, each built once; KUBERNETES=1.30 for one, ONLY=name as elsewhere
	@$(READY)
	@sh .ci/setup matrix
	@for version in $(or $(KUBERNETES),$(MATRIX)); do \
	  programs=$$($(BIN)/python -m tools.matrix.programs $$version) || exit; \
	  VKPROVIDER_SANDBOX_BIN="$$programs" $(PYTEST) $(ON_OLDER) $(NOT_ON_OLDER) $(SPREAD) $(ONLY_K) || exit; done

rights: $(STAMP) ## The provider's rights and how often the cluster tests use each; ONLY=name as elsewhere
	@sh .ci/setup go
	@rm -rf build/rights; mkdir -p build/rights
	@RIGHTS_LOGS=build/rights $(PYTEST) tests/cluster $(SPREAD) -q $(ONLY_K)
	@$(BIN)/python -m tools.rights build/rights/*.log

bench: $(STAMP) ## The benchmarks; ONLY=name runs one
	@sh .ci/setup go
	@$(BIN)/python -m bench $(ONLY)

contract: $(STAMP) ## Our CML client's contract suite against a real CML: CML_URL=https://… CML_PASSWORD=…, see docs/simulator.md
	@$(BIN)/python -m tests.component.cml.contract

wheel: $(STAMP) ## Build the wheel into dist/
	@rm -rf build/lib build/bdist*
	@$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

spawner: $(STAMP) ## Build the source and, of that, the wheel of the spawner for JupyterHub (hub/) into dist/
	@mkdir -p dist
	@cd hub && $(abspath $(BIN))/python -c 'from setuptools.build_meta import build_sdist as build; build("../dist")' >/dev/null
	@$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist dist/jupyterhub_vkprovider-$(VERSION).tar.gz

plugin: wheel ## Build dist/kubectl-lablet-VERSION.tar.gz, which installs itself at its first call
	@rm -rf build/plugin; mkdir -p build/plugin
	@cp dist/vkprovider-$(VERSION)-*.whl requirements.lock LICENSE tools/plugin/kubectl-lablet build/plugin/
	@cp tools/plugin/kubectl-lablet build/plugin/kubectl_complete-lablet # krew unpacks no links
	@tar -C build/plugin -cf - . | gzip -n > dist/kubectl-lablet-$(VERSION).tar.gz
	@ls -l dist/kubectl-lablet-$(VERSION).tar.gz

helm: $(STAMP) ## Build Helm once, 3 minutes on 2 cores that do nothing else; VKPROVIDER_HELM names another one. Tests of the chart need it
	@sh .ci/setup helm
	@$(BIN)/python -m tools.helm.program

chart: helm ## Package the Helm chart into dist/
	@"$$($(BIN)/python -m tools.helm.program)" package manifests/helm/vkprovider --destination dist

# The files of a release, in dist/.
RELEASED = $(addprefix vkprovider-$(VERSION),-py3-none-any.whl .cdx.json) $(CHART) kubectl-lablet-$(VERSION).tar.gz \
  $(addprefix jupyterhub_vkprovider-$(VERSION),.tar.gz -py3-none-any.whl) install-$(VERSION).yaml $(if $(URL),lablet.yaml)

release: wheel plugin spawner chart sbom ## All files of a release but the image in dist/, with SHA256SUMS; URL=folder adds krew's manifest
	@cp build/image/sbom.cdx.json dist/vkprovider-$(VERSION).cdx.json
	@cp manifests/install.yaml dist/install-$(VERSION).yaml
	@$(if $(URL),$(BIN)/python -m tools.krew dist/kubectl-lablet-$(VERSION).tar.gz $(URL) > dist/lablet.yaml)
	@cd dist && sha256sum $(RELEASED) > SHA256SUMS && cat SHA256SUMS
	@echo $(addprefix dist/,$(RELEASED)) > dist/FILES

version:
	@echo $(VERSION)

lock: $(STAMP) ## Pin what the image is made of, by hash, in the versions of constraints.txt
	@$(BIN)/python -m venv build/lock && build/lock/bin/pip --quiet install uv
	@echo setuptools > build/lock/build.in
	@build/lock/bin/$(LOCK) --extra fast --extra ssh pyproject.toml --output-file requirements.lock
	@build/lock/bin/$(LOCK) build/lock/build.in --output-file requirements-build.lock
	@build/lock/bin/$(filter-out --constraint constraints.txt,$(LOCK)) images/workbench/requirements.in \
	  --output-file images/workbench/requirements.lock

sbom: $(STAMP) ## Build the image's environment without a container, and its SBOM (CycloneDX), in build/image
	@rm -rf build/image; $(BIN)/python -m venv --without-pip build/image/env
	@$(BIN)/pip --quiet --python build/image/env install --require-hashes --no-deps --requirement requirements.lock
	@$(BIN)/pip --quiet --python build/image/env install --no-deps .
	@$(BIN)/python -m venv build/image/tool && build/image/tool/bin/pip --quiet install cyclonedx-bom
	@build/image/tool/bin/cyclonedx-py environment --output-reproducible --output-file build/image/sbom.cdx.json \
	  build/image/env
	@rm -rf build/image/tool; du -sh build/image/env; build/image/env/bin/vkprovider --version

image: ## Build the container image; IMAGE=registry/name:tag, CONTAINER=docker, PYTHON_IMAGE=name@digest, BUILD=flags
	$(CONTAINER) build $(BUILD) $(if $(PYTHON_IMAGE),--build-arg PYTHON_IMAGE=$(PYTHON_IMAGE)) --tag $(IMAGE) \
	  --file Containerfile .

workbench: ## Build the image of workbenches on IMAGE; WORKBENCH=name:tag, KUBECTL=program or KUBECTL_SHA256=sum, others as for image
	@[ -n "$(KUBECTL_SHA256)" ] || { echo "name KUBECTL=program, or KUBECTL_SHA256=sum of the one that is downloaded" >&2; exit 2; }
	@rm -rf build/workbench; mkdir -p build/workbench
	@cp images/workbench/* $(if $(KUBECTL),$(KUBECTL)) build/workbench
	$(CONTAINER) build $(BUILD) --build-arg IMAGE=$(IMAGE) --build-arg KUBECTL_SHA256=$(KUBECTL_SHA256) \
	  $(if $(PYTHON_IMAGE),--build-arg PYTHON_IMAGE=$(PYTHON_IMAGE)) $(if $(KUBECTL),--build-arg KUBECTL=$(notdir $(KUBECTL))) --tag $(WORKBENCH) build/workbench

base: ## Make a base image of Debian's packages, without a registry; BASE=name, MIRROR=url of another day's packages
	@mkdir -p build
	mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,ca-certificates,netbase,tzdata \
	  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
	  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
	  bookworm build/base.tar $(MIRROR)
	$(CONTAINER) import build/base.tar $(BASE)
	@rm build/base.tar

clean: ## Remove .venv and everything built; the cached control plane stays
	rm -rf $(VENV) build dist *.egg-info vkpsim/build vkpsim/*.egg-info vkpsandbox/build vkpsandbox/*.egg-info hub/build hub/src/*.egg-info .mypy_cache .ruff_cache .import_linter_cache .hypothesis
