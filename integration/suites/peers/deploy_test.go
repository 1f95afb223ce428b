package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/shared/event/noticetest"
)

// The stack is deployed in the account and region of the corpus of AWS's events.
const (
	deployedAccount = noticetest.Account
	deployedRegion  = noticetest.Region
	deployedCluster = "prod"
	deployedStack   = "Joist-" + deployedCluster
	templateName    = deployedStack + ".template.json"
)

// removals are the parts of the template that prevent a deployment to an emulator. For
// each there is a behaviour "deploys <part>", which must fail as its row in the table of
// differences states.
var removals = map[string][]part{
	"TestLocalStackDeploy": {{kind: "AWS::Lambda::Function"}},
	"TestMotoDeploy":       {{"AWS::Events::Archive", "EventPattern"}},
}

func TestRemovedPartsAreInTable(t *testing.T) {
	for test, parts := range removals {
		for _, p := range parts {
			behaviour := test + "/deploys_" + strings.ReplaceAll(p.String(), " ", "_")
			if !slices.ContainsFunc(differences, func(d difference) bool { return d.full() == behaviour }) {
				t.Errorf("%s has no row in the table of differences", behaviour)
			}
		}
	}
}

// TestLocalStackDeploy deploys the stack with the CDK's command line to LocalStack.
func TestLocalStackDeploy(t *testing.T) { deployTo(t, startLocalStack, 5*time.Minute) }

// TestMotoDeploy deploys the stack with the CDK's command line to moto.
func TestMotoDeploy(t *testing.T) {
	deployTo(t, func(t *testing.T, at installed) string {
		// moto finds a template in its own S3 by the URL only when the host is localhost.
		return strings.Replace(startMoto(t, at), "127.0.0.1", "localhost", 1)
	}, 90*time.Second)
}

// deployTo deploys, compares, sends messages, destroys and deploys again. Every step is a
// behaviour; steps that depend on a failed one are not tried. patience is the time limit
// of one CDK command, because the CDK never stops waiting for an emulator that does not
// complete a deployment.
func deployTo(t *testing.T, start func(*testing.T, installed) (url string), patience time.Duration) {
	at := peers(t)
	t.Parallel()
	assembly := synthesize(t, nil)
	full, err := os.ReadFile(filepath.Join(assembly, templateName))
	if err != nil {
		t.Fatal(err)
	}
	parts := removals[t.Name()]
	reduced, removed, err := removeParts(full, parts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("removes only the listed parts", func(t *testing.T) {
		t.Logf("removed from the template: %s", summarize(full, parts, removed))
	})
	for _, p := range parts {
		t.Run("deploys "+p.String(), func(t *testing.T) {
			t.Parallel()
			alone, err := keepPart(full, p)
			if err != nil {
				t.Fatal(err)
			}
			c := newCDK(t, at, start(t, at), assembly, alone, patience)
			c.must(t, "bootstrap", "aws://"+deployedAccount+"/"+deployedRegion)
			if out, err := c.run(t, "deploy", deployArgs...); err != nil {
				t.Fatal(err, out)
			}
			for _, resources := range readStack(t, c.server, parsePlaced(t, alone)) {
				for _, each := range resources {
					if each.err != nil {
						t.Errorf("the deployment is complete without %s: %v", each.id, each.err)
					}
				}
			}
		})
	}
	t.Run("stack", func(t *testing.T) {
		t.Parallel()
		c := newCDK(t, at, start(t, at), assembly, reduced, patience)
		c.must(t, "bootstrap", "aws://"+deployedAccount+"/"+deployedRegion)
		c.must(t, "deploy", deployArgs...)
		in := parsePlaced(t, reduced)
		compareStack(t, c.server, in)
		t.Run("routes", func(t *testing.T) { routeMessages(t, c.server, in) })
		// LocalStack deploys no functions, so their environment is read from the complete template.
		t.Run("functions", func(t *testing.T) { runFunctions(t, c.server, parsePlaced(t, full)) })
		t.Run("uninstall", func(t *testing.T) { uninstall(t, c, in) })
	})
}

// summarize describes the removal: the parts, and the resources by type.
func summarize(full []byte, parts []part, removed []string) string {
	d, err := parseTemplate(full)
	if err != nil {
		return err.Error()
	}
	counts := map[string]int{}
	for _, id := range removed {
		counts[fmt.Sprint(d.section("Resources")[id].(map[string]any)["Type"])]++
	}
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d of %s", counts[kind], kind))
	}
	for _, p := range parts {
		if p.property != "" {
			out = append(out, p.String())
		}
	}
	if len(out) == 0 {
		out = append(out, "nothing")
	}
	return fmt.Sprintf("%s (%d resources of %d)", strings.Join(out, ", "), len(removed), len(d.section("Resources")))
}

// synthesize creates the cloud assembly as `make synth` does, with placeholders for the
// functions' code, because no emulator runs it and building it for arm64 takes minutes.
func synthesize(t *testing.T, context map[string]string) (assembly string) {
	t.Helper()
	dir := t.TempDir()
	binaries, assembly := filepath.Join(dir, "lambda"), filepath.Join(dir, "cdk.out")
	for _, service := range []string{"planner", "disruption", "interruption", "catalog", "launcher", "spotrole"} {
		path := filepath.Join(binaries, service, "bootstrap")
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho "+service+" is a placeholder\nexit 1\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]string{"clusterName": deployedCluster, "binaries": binaries}
	maps.Copy(all, context)
	reported, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "./cmd/joist-infra")
	cmd.Dir = filepath.Join("..", "..", "..", "infra")
	cmd.Env = append(os.Environ(), "GOWORK=off", "CDK_OUTDIR="+assembly, "CDK_CONTEXT_JSON="+string(reported))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("synthesize the stack: %v\n%s", err, out)
	}
	return assembly
}

// deployArgs prevent prompts.
var deployArgs = []string{"--require-approval", "never"}

// cdk runs the CDK's command line with one cloud assembly and one emulator.
type cdk struct {
	program, assembly, home string
	server                  aws.Config
	patience                time.Duration
}

// newCDK copies the assembly and replaces the template in the copy.
func newCDK(t *testing.T, at installed, url, assembly string, template []byte, patience time.Duration) cdk {
	t.Helper()
	dir := t.TempDir()
	c := cdk{program: at.cdk, assembly: filepath.Join(dir, "cdk.out"), home: dir, server: config(url), patience: patience}
	c.server.Region = deployedRegion
	// LocalStack takes the account from the access key.
	c.server.Credentials = credentials.NewStaticCredentialsProvider(deployedAccount, "secret", "")
	if err := os.CopyFS(c.assembly, os.DirFS(assembly)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.assembly, templateName), template, 0o666); err != nil {
		t.Fatal(err)
	}
	return c
}

// run runs a command and returns the end of its output.
func (c cdk) run(t *testing.T, command string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), c.patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", slices.Concat([]string{c.program, command, "--no-notices", "--ci", "--progress", "events"}, args)...)
	if command != "bootstrap" {
		cmd.Args = append(cmd.Args, "--app", c.assembly)
	}
	cmd.Dir = c.home
	url := *c.server.BaseEndpoint
	cmd.Env = append(withoutAWS(os.Environ()), "HOME="+c.home, "AWS_ENDPOINT_URL="+url, "AWS_ENDPOINT_URL_S3="+url,
		"AWS_ACCESS_KEY_ID="+deployedAccount, "AWS_SECRET_ACCESS_KEY=secret", "AWS_REGION="+deployedRegion,
		"AWS_EC2_METADATA_DISABLED=true", "CDK_DISABLE_CLI_TELEMETRY=true", "NO_COLOR=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if ctx.Err() != nil {
		err = fmt.Errorf("it did not end within %s", c.patience)
	}
	if err != nil {
		err = fmt.Errorf("cdk %s: %w", command, err)
	}
	return "\n" + strings.Join(lines[max(0, len(lines)-40):], "\n"), err
}

// withoutAWS removes the user's AWS settings, none of which apply to a peer.
func withoutAWS(environment []string) []string {
	return slices.DeleteFunc(environment, func(each string) bool { return strings.HasPrefix(each, "AWS_") })
}

// must runs a command as a behaviour; later steps depend on it.
func (c cdk) must(t *testing.T, command string, args ...string) {
	t.Helper()
	if !t.Run(command, func(t *testing.T) {
		if out, err := c.run(t, command, args...); err != nil {
			t.Error(err, out)
		}
	}) {
		t.FailNow()
	}
}

// parsePlaced resolves the template for its account and region.
func parsePlaced(t *testing.T, text []byte) *template.Stack {
	t.Helper()
	parsed, err := template.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.DeployTo(template.Place{Account: deployedAccount, Region: deployedRegion, Partition: "aws", Name: deployedStack})
}

// pair is a resource of the template with the peer's response.
type pair struct {
	id        string
	want, got object
	err       error
}

// readStack reads every resource of the template from the peer, by type.
func readStack(t *testing.T, server aws.Config, in *template.Stack) map[string][]pair {
	t.Helper()
	server.RetryMaxAttempts = 1
	out := map[string][]pair{}
	for _, id := range slices.Sorted(maps.Keys(in.Resources)) {
		resource, err := in.Resource(id)
		if err != nil {
			t.Fatal(err)
		}
		read, ok := readers[resource.Type]
		if !ok {
			t.Fatalf("%s: no reader for the type %s", id, resource.Type)
		}
		each := pair{id: id, want: reparse(resource.Properties).(object)}
		got, err := read(t.Context(), server, each.want)
		if each.err = err; err == nil {
			each.got = reparse(got).(object)
		}
		out[resource.Type] = append(out[resource.Type], each)
	}
	return out
}

// compareStack has a behaviour for each type, "exists", and one for each property of the
// type that the template sets.
func compareStack(t *testing.T, server aws.Config, in *template.Stack) {
	stack := readStack(t, server, in)
	for _, kind := range slices.Sorted(maps.Keys(stack)) {
		t.Run(kind, func(t *testing.T) {
			var made []pair
			properties := map[string]bool{}
			t.Run("exists", func(t *testing.T) {
				var absent []string
				for _, each := range stack[kind] {
					if each.err != nil {
						absent = append(absent, fmt.Sprintf("%s: %v", each.id, each.err))
						continue
					}
					made = append(made, each)
					for name := range each.want {
						properties[name] = unread[kind+" "+name] == ""
					}
				}
				report(t, absent, len(stack[kind]))
			})
			for _, name := range slices.Sorted(maps.Keys(properties)) {
				if !properties[name] {
					continue
				}
				t.Run(name, func(t *testing.T) {
					var wrong []string
					total := 0
					for _, each := range made {
						want, ok := each.want[name]
						if !ok {
							continue
						}
						total++
						if all := differ(name, normalize(want), normalize(each.got[name])); len(all) > 0 {
							wrong = append(wrong, each.id+": "+strings.Join(all[:min(3, len(all))], "; "))
						}
					}
					report(t, wrong, total)
				})
			}
		})
	}
}

// report fails the test with one message: the number of differences, and the first of
// them.
func report(t *testing.T, wrong []string, total int) {
	t.Helper()
	if len(wrong) > 0 {
		t.Errorf("%d of %d: %s", len(wrong), total, wrong[0])
	}
}

// uninstall removes the stack and installs it again as deploy/docs/uninstall.md says.
func uninstall(t *testing.T, c cdk, in *template.Stack) {
	before := readStack(t, c.server, in)
	client := s3Client(c.server)
	bucket := aws.String("joist-" + deployedCluster + "-" + deployedAccount + "-" + deployedRegion)
	key := aws.String(deployedCluster + "/plans/kept")
	_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("{}")})
	if err != nil {
		t.Fatal(err)
	}
	c.must(t, "destroy", "--force")
	after := readStack(t, c.server, in)
	for _, kind := range slices.Sorted(maps.Keys(after)) {
		t.Run("keeps or deletes "+kind, func(t *testing.T) {
			var wrong []string
			for i, each := range after[kind] {
				if before[kind][i].err != nil {
					continue
				}
				retained := strings.HasPrefix(in.Resources[each.id].DeletionPolicy, "Retain")
				if exists := each.err == nil; exists != retained {
					wrong = append(wrong, fmt.Sprintf("%s: exists: %t, should exist: %t", each.id, exists, retained))
				}
			}
			report(t, wrong, len(after[kind]))
		})
	}
	t.Run("keeps documents", func(t *testing.T) {
		if _, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: bucket, Key: key}); err != nil {
			t.Error(err)
		}
	})
	imported := t.Run("deploys again with the kept resources", func(t *testing.T) {
		if out, err := c.run(t, "deploy", append(slices.Clone(deployArgs), "--import-existing-resources")...); err != nil {
			t.Fatal(err, out)
		}
		if _, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: bucket, Key: key}); err != nil {
			t.Errorf("read the document of the imported bucket: %v", err)
		}
	})
	t.Run("deploys again after the kept resources are removed", func(t *testing.T) {
		if out, err := c.run(t, "destroy", "--force"); err != nil && imported {
			t.Fatal(err, out)
		}
		_, _ = client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: bucket, Key: key})
		_, _ = client.DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: bucket})
		_, _ = cloudwatchlogs.NewFromConfig(c.server).DeleteLogGroup(t.Context(), &cloudwatchlogs.DeleteLogGroupInput{
			LogGroupName: aws.String("/joist/" + deployedCluster + "/facts"),
		})
		for _, each := range readStack(t, c.server, in)["AWS::IAM::ManagedPolicy"] {
			// moto does not delete them, which the behaviours above report.
			_, _ = iam.NewFromConfig(c.server).DeletePolicy(t.Context(), &iam.DeletePolicyInput{
				PolicyArn: aws.String("arn:aws:iam::" + deployedAccount + ":policy/" + *nameOf(each.want, "ManagedPolicyName")),
			})
		}
		// LocalStack finds no change set for a stack with the name of a deleted one; a
		// deployment without a change set works.
		if out, err := c.run(t, "deploy", append(slices.Clone(deployArgs), "--method", "direct")...); err != nil {
			t.Fatal(err, out)
		}
		for kind, resources := range readStack(t, c.server, in) {
			for i, each := range resources {
				if each.err != nil && before[kind][i].err == nil {
					t.Errorf("%s existed after the first deployment and does not after the second: %v", each.id, each.err)
				}
			}
		}
	})
}
