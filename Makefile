# Joist: every command a contributor needs. `make` alone prints this list.
#
# The recipes are one line each: what a stage does is in .ci/stages, which
# prints a header per stage and a table of stages and times at the end.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# How many seeds `make sim` walks through, and the one seed to play instead.
SEEDS ?= 500
SEED ?=
# What `make synth` is told: the CDK's context.
CONTEXT ?= {"clusterName":"prod"}
# Arguments for the demo and the benchmark, such as ARGS='--seed 7' or ARGS='-set b=10000'.
ARGS ?=
export SEEDS SEED ARGS CONTEXT

STAGES := .ci/stages

##@ First steps

.PHONY: help
help: ## Print this list
	@.ci/help $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Play a whole day of a cluster on this machine: no AWS account, no Kubernetes (ARGS='--seed 7')
	@$(STAGES) demo

.PHONY: build
build: ## Build bin/joist and bin/joist-<service>, each as it is released (GOWORK=off, static)
	@$(STAGES) build

.PHONY: lambdas
lambdas: ## Build the functions for Lambda on arm64 (bin/lambda)
	@$(STAGES) lambdas

.PHONY: synth
synth: ## Write the CloudFormation template of a cluster to cdk.out (needs Node; CONTEXT='{"clusterName":"prod"}')
	@$(STAGES) synth

.PHONY: test
test: ## Everything a pull request must pass: preflight, lint, unit, rules, upstream, differential, infra, simulator, crash points, planted bugs, wire, charts, e2e
	@$(STAGES) preflight lint unit rules upstream differential infra sim crash planted wire charts e2e

##@ One stage of the tests

.PHONY: preflight
preflight: ## Check that this machine can build and test Joist, and say what to do if not
	@$(STAGES) preflight

.PHONY: lint
lint: ## Run golangci-lint over every module of the workspace
	@$(STAGES) lint

.PHONY: unit
unit: ## Run unit, property and conformance tests of shared and of each service
	@$(STAGES) unit

.PHONY: race
race: ## The same under the race detector (needs a C compiler; slow)
	@$(STAGES) race

.PHONY: conformance
conformance: ## Run the conformance suites alone, over every model and adapter
	@$(STAGES) conformance

.PHONY: rules
rules: ## Check the import rules, the tidiness of the repository's text, and every command that its pages tell to type
	@$(STAGES) rules

.PHONY: upstream
upstream: ## Compare our Karpenter objects with Karpenter's own types and manifests
	@$(STAGES) upstream

.PHONY: differential
differential: ## Plan random scenarios beside upstream Karpenter, and have an independent judge check every plan
	@$(STAGES) differential

.PHONY: sim
sim: ## Run the simulator: whole clusters under seeded faults (SEEDS=500, or SEED=7 alone)
	@$(STAGES) sim

.PHONY: crash
crash: ## Crash every service at every effect, and check that nothing is lost, doubled or orphaned
	@$(STAGES) crash

.PHONY: planted
planted: ## Plant known bugs and prove that the simulator finds each of them
	@$(STAGES) planted

.PHONY: wire
wire: ## Run the services' adapters against loopback fakes that speak AWS's wire protocols
	@$(STAGES) wire

.PHONY: infra
infra: ## Check the CDK app: every right against attacks, every template against rules and cdk-nag (needs Node)
	@$(STAGES) infra

.PHONY: charts
charts: ## Render the Helm charts with the values of every era, and install them on a real control plane
	@$(STAGES) charts

.PHONY: e2e
e2e: ## Run the services against a real Kubernetes control plane on loopback
	@$(STAGES) e2e

.PHONY: storm
storm: ## Put 500 nodes and 5,000 pods through a spot storm, and draw it (10 to 20 minutes; nothing else should run)
	@$(STAGES) storm

.PHONY: consolidation
consolidation: ## Let a cluster of 200 nodes come apart, watch it become cheap again, and draw it (10 to 20 minutes)
	@$(STAGES) consolidation

.PHONY: scale
scale: ## Measure the watcher in a cluster of 5,000 nodes and 100,000 pods, and hold it to its limits (2 minutes; nothing else should run)
	@$(STAGES) scale

.PHONY: peers
peers: ## Compare our fakes and our decisions with other projects' (needs Python and Java)
	@$(STAGES) peers

##@ Measuring and generating

.PHONY: bench
bench: ## Measure planning and consolidation, Joist beside Karpenter: about 15 minutes, a table and a drawing (ARGS='-only joist', '-set b=10000')
	@$(STAGES) bench

.PHONY: interrupted
interrupted: ## Measure how interruption events are dealt with, Joist beside Karpenter: about 5 minutes (nothing else should run)
	@$(STAGES) interrupted

.PHONY: figures
figures: ## Measure again, three runs each, and write the figures into README.md
	@$(STAGES) figures

.PHONY: controlplane
controlplane: ## Build the Kubernetes control plane that e2e runs on (about 5 minutes, once)
	@$(STAGES) controlplane

.PHONY: catalog
catalog: ## Rebuild the embedded offline catalogue of instance types (run by hand, commit the result)
	@$(STAGES) catalog

.PHONY: generate
generate: ## Rewrite every generated file
	@$(STAGES) generate

.PHONY: verify
verify: ## Fail when `make generate` would change a file
	@$(STAGES) verify

.PHONY: clean
clean: ## Remove what was built (bin/ and .cache/)
	@$(STAGES) clean
