# Joist: every command a contributor needs. `make` alone prints this list.
#
# The recipes are one line each: what a stage does is in .ci/stages, which
# prints a header per stage and a table of stages and times at the end.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# How many seeds `make sim` runs instead of 500, the one seed to run instead, and the number that draws samples.
SEEDS ?=
SEED ?=
SAMPLE ?=
# The size of two samples of `make prove`: how many hostile seeds, and one in how many of Karpenter's specs.
HOSTILE ?= 1000
SHARE ?= 6
# What `make synth` is told: the CDK's context.
CONTEXT ?= {"clusterName":"prod"}
# Arguments for the demo and the benchmark, such as ARGS='--seed 7' or ARGS='-set b=10000'.
ARGS ?=
# The names of the specs that `make specs` runs instead of all, as a regular expression.
FOCUS ?=
# How long `make fuzz` runs each fuzzer, and which fuzzers as a regular expression.
FUZZTIME ?= 30s
FUZZ ?=
# How long `make soak` runs.
SOAK ?= 1h
export SEEDS SEED SAMPLE HOSTILE SHARE ARGS CONTEXT FOCUS FUZZTIME FUZZ SOAK

STAGES := .ci/stages

##@ First steps

.PHONY: help
help: ## Print this list
	@.ci/help $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Run the demo on this machine, without AWS account and Kubernetes (ARGS='--seed 7')
	@$(STAGES) demo

.PHONY: build
build: ## Build bin/joist and bin/joist-<service> as for a release (GOWORK=off, static)
	@$(STAGES) build

.PHONY: lambdas
lambdas: ## Build the Lambda functions for arm64 (bin/lambda)
	@$(STAGES) lambdas

.PHONY: synth
synth: ## Write the CloudFormation template of a cluster to cdk.out (needs Node; CONTEXT='{"clusterName":"prod"}')
	@$(STAGES) synth

.PHONY: test
test: ## Run every stage of tests, with a few seeds and crash points (12 to 25 minutes on two cores)
	@QUICK=1 $(STAGES) preflight lint unit rules upstream differential infra sim crash wire charts e2e docs

.PHONY: prove
prove: ## Run the tests that take longer, in samples that are drawn again for each run (SAMPLE=7 repeats the sample of number 7): seeds, seeds with a hostile service, services of two versions, crash points, planted bugs, mutants, models of launches and disruptions, fuzzers, pollers, the move from Karpenter, five tutorials, Karpenter's own specs (36 minutes on two cores with warm caches)
	@SAMPLE=$(or $(SAMPLE),draw) $(STAGES) 'sim&' 'hostile&' 'upgrades&' 'crash&' 'planted&' 'protocol&' 'mutants&' 'fuzz&' pollers migrate documents specs providerspecs

.PHONY: prove-long
prove-long: ## Run what a nightly build runs: a release on this machine, 10,000 seeds of each kind and everything that make prove draws from, large clusters, the race detector, other projects' fakes, an hour of mixed load (many hours)
	@SEEDS=$(or $(SEEDS),10000) $(STAGES) sim hostile
	@$(STAGES) release-dry-run upgrades crash planted mutants-all fuzz specs providerspecs race plans apifaults-long storm consolidation sidebyside scale peers versions soak

##@ Single test stages

.PHONY: preflight
preflight: ## Check that this machine can build and test Joist, and print what is missing
	@$(STAGES) preflight

.PHONY: lint
lint: ## Run golangci-lint on every module of the workspace
	@$(STAGES) lint

.PHONY: unit
unit: ## Run unit, property and conformance tests of shared and of each service
	@$(STAGES) unit

.PHONY: race
race: ## Run the unit stage with the race detector (needs a C compiler; slow)
	@$(STAGES) race

.PHONY: conformance
conformance: ## Run only the conformance suites, on every model and adapter
	@$(STAGES) conformance

.PHONY: rules
rules: ## Check the import rules, the text of the repository, every command in its pages, and the compatibility table
	@$(STAGES) rules

.PHONY: upstream
upstream: ## Compare Joist's Karpenter objects with Karpenter's own types and manifests
	@$(STAGES) upstream

.PHONY: differential
differential: ## Plan random scenarios with Joist and upstream Karpenter, and check every plan with the independent validator
	@$(STAGES) differential

.PHONY: sim
sim: ## Run the simulator: complete clusters with seeded faults (500 seeds; SEEDS=50, or SEED=7 alone)
	@$(STAGES) sim

.PHONY: upgrades
upgrades: ## Run the simulator with services of two versions, which are upgraded and rolled back (30 seeds; SEEDS=10, or SEED=7 alone)
	@$(STAGES) upgrades

.PHONY: hostile
hostile: ## Run the simulator with a service or a tenant as attacker (1,000 seeds, drawn again for each run; SEEDS=50, or SEED=7 alone)
	@$(STAGES) hostile

.PHONY: crash
crash: ## Crash every service at every effect, pause lifecycle while the cluster changes, and check that nothing is lost, duplicated or orphaned (some 10,000 runs; over an hour on two cores, estimated from samples)
	@$(STAGES) crash

.PHONY: planted
planted: ## Run the mutation tests: the simulator must find each planted bug
	@$(STAGES) planted

.PHONY: protocol
protocol: ## Visit every state of models of launches and disruptions, and find planted bugs in it (about 30 s)
	@$(STAGES) protocol

.PHONY: mutants
mutants: ## Change the source of the packages in deploy/docs/mutations.md in 100 places that are drawn again for each run, and require that their tests notice each change that is not listed with a reason (JOIST_MUTANTS='^shared/host' runs those that match)
	@$(STAGES) mutants

.PHONY: mutants-all
mutants-all: ## Change the source in every place that deploy/docs/mutations.md counts, and check the page (hours)
	@$(STAGES) mutants-all

.PHONY: wire
wire: ## Run the services' adapters against loopback fakes of AWS's wire protocols
	@$(STAGES) wire

.PHONY: fuzz
fuzz: ## Run every fuzzer for 30 seconds, two at once (9 minutes) (FUZZTIME=2m, FUZZ='a regular expression' runs some)
	@$(STAGES) fuzz

.PHONY: plans
plans: ## Check the plans of 5,000 new batches with rarer features (some minutes)
	@$(STAGES) plans

.PHONY: infra
infra: ## Check the CDK app: every right against attacks, every template against rules and cdk-nag (needs Node)
	@$(STAGES) infra

.PHONY: charts
charts: ## Render the Helm charts with the values of every version, and install them on a real control plane
	@$(STAGES) charts

.PHONY: docs
docs: ## Build the documentation site in .cache/docs/site, and check its links and navigation (needs Python)
	@$(STAGES) docs

.PHONY: e2e
e2e: ## Run the functions and the lifecycle service on a real Kubernetes control plane on loopback
	@$(STAGES) e2e

.PHONY: pollers
pollers: ## Run all services as pollers on a real control plane: 0→5→0, a spot storm, a consolidation
	@$(STAGES) pollers

.PHONY: apifaults
apifaults: ## Run watcher and lifecycle while their requests to a real API server fail (2 minutes; SEED=7 repeats a run)
	@$(STAGES) apifaults

.PHONY: apifaults-long
apifaults-long: ## Run ten rounds of apifaults (20 minutes)
	@$(STAGES) apifaults-long

.PHONY: migrate
migrate: ## Move a cluster from Karpenter's own controller to Joist and back, on a real control plane
	@$(STAGES) migrate

.PHONY: documents
documents: ## Follow published tutorials about Karpenter with Joist, on a real control plane (4 minutes)
	@$(STAGES) documents

.PHONY: versions
versions: ## Run each service of the last release with the others of this version on a real control plane (JOIST_PREVIOUS=<commit>)
	@$(STAGES) versions

.PHONY: storm
storm: ## Measure and plot a spot storm with 500 nodes and 5,000 pods (10 to 20 minutes on an idle machine)
	@$(STAGES) storm

.PHONY: consolidation
consolidation: ## Measure and plot the consolidation of a fragmented cluster with 200 nodes (10 to 20 minutes)
	@$(STAGES) consolidation

.PHONY: soak
soak: ## Run mixed load for an hour, with kills of services, restarts of the API server, failures of AWS and cut connections (SOAK=6h, SEED=7 repeats a run)
	@$(STAGES) soak

.PHONY: sidebyside
sidebyside: ## Run Karpenter with its kwok provider and then Joist over the same day of load, and plot both; then the same day in a model (40 minutes)
	@$(STAGES) sidebyside

.PHONY: scale
scale: ## Measure watcher and lifecycle with 5,000 nodes and 100,000 pods, and lifecycle with 20,000 nodes and 400,000 pods, check their limits, and print the path of a lone pod (9 minutes on an idle machine, with 16 GB of memory)
	@$(STAGES) scale

.PHONY: release-dry-run
release-dry-run: ## Make a release of HEAD on this machine, install it and use it; nothing is published (4 minutes, and tens of minutes the first time, to build its tools)
	@$(STAGES) release-dry-run

.PHONY: specs
specs: ## Run Karpenter's own specs with Joist's planner and lifecycle in place of its scheduler and controllers (FOCUS='a regular expression' runs some)
	@$(STAGES) specs

.PHONY: providerspecs
providerspecs: ## Run the specs of Karpenter's AWS provider with Joist's launcher (SAMPLE=draw runs a sample, FOCUS='a regular expression' some)
	@$(STAGES) providerspecs

.PHONY: peers
peers: ## Compare the fakes and decisions with those of other projects, and deploy the template to AWS emulators (needs Python, Java and Node)
	@$(STAGES) peers

##@ Measurements and generated files

.PHONY: bench
bench: ## Measure planning and consolidation of Joist and Karpenter, and larger plans of Joist alone, with a table and a plot (about 20 minutes) (ARGS='-only joist', '-set b=10000', '-before HEAD~3' for another commit in place of Karpenter)
	@$(STAGES) bench

.PHONY: interrupted
interrupted: ## Measure interruption handling of Joist and Karpenter (about 5 minutes on an idle machine)
	@$(STAGES) interrupted

.PHONY: figures
figures: ## Repeat the measurements, three runs each, and write the results to README.md
	@$(STAGES) figures

.PHONY: report-figures
report-figures: ## Draw the pictures of deploy/docs/report.md again (needs Chromium)
	@$(STAGES) report-figures

.PHONY: controlplane
controlplane: ## Build the Kubernetes control plane for e2e (about 5 minutes, once)
	@$(STAGES) controlplane

.PHONY: catalog
catalog: ## Rebuild the embedded catalogue of instance types (run manually, commit the result)
	@$(STAGES) catalog

.PHONY: generate
generate: ## Rewrite every generated file
	@$(STAGES) generate

.PHONY: verify
verify: ## Fail if `make generate` would change a file
	@$(STAGES) verify

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in the shipped commands (needs vuln.go.dev, or VULNDB=file:///path/to/a/copy)
	@$(STAGES) vulncheck

.PHONY: licenses
licenses: ## Check the licences of the modules in the shipped commands, and write NOTICE and THIRD_PARTY_LICENSES
	@$(STAGES) licenses

.PHONY: clean
clean: ## Remove build outputs (bin/, .cache/ and cdk.out/)
	@$(STAGES) clean
