import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The modules that decide what a command may do, and which data of the hub and the broker is trusted. */
const SAFETY = [
  'src/base/limiter.ts',
  'src/bridge/{dispatcher,replay}.ts',
  'src/contract/{commands,installs,payload,permissions,templates,topics,writes}.ts',
  'src/hub/{client,decode,refusal,written}.ts',
  'src/mqtt/{outbox,retained,sender}.ts',
]

/** These folders have their own configurations: npm run test:container, test:package, test:node-red and test:page. */
const ELSEWHERE = ['test/container/**', 'test/package/**', 'test/node-red/**', 'test/page/**']
/** Tests that change or observe their whole process, or take so long that the start of a worker does not matter. */
const APART = [
  'test/{chaos/chaos,tooling/build/bundle,{depth,fuzz,recording}/*}.test.ts',
  'test/base/expressions.test.ts',
  'test/cluster/!(leased).test.ts',
  // Sets an environment variable.
  'test/config/instance.test.ts',
  'test/hub/fuzz.test.ts',
  'test/support/world.test.ts',
]

/**
 * The tests that take longest. They mostly wait for processes, timers and leases, so only some of them run at a time,
 * beside tests that need the CPU. A fresh checkout has no measured times.
 */
const LONGEST = [
  'recording/',
  'cluster/members',
  'cluster/fleet',
  'rollout/owners',
  'doctor/set-ups',
  'guardian/months',
  'cli/program',
  'conformance/put-back',
  'rollout/rollout',
  'bridge/presence',
  'conformance/deviations',
  'guardian/world',
  'doctor/nats',
  'bridge/contested',
  'docs/asyncapi',
  'rollout/stop',
  'bridge/state',
  'server/time-limits',
  'home-assistant/live',
  'cli/call',
  'cli/cleanup',
]

/** Puts the longest tests at even distances before the others, so that none of them starts last. */
class Spread extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    // A worker is reused only if the next file belongs to the same project.
    return ['apart', 'shared'].flatMap((name) => {
      const own = sorted.filter(({ project }) => project.name === name)
      const long = LONGEST.flatMap((part) => own.filter(({ moduleId }) => moduleId.includes(`/${part}`)))
      const others = own.filter((file) => !long.includes(file))
      const distance = Math.floor((0.4 * others.length) / long.length)
      return [...long.flatMap((file) => [file, ...others.splice(0, distance)]), ...others]
    })
  }
}

const covers = process.argv.some((option) => option.startsWith('--coverage'))
// Compile the sources once for all workers and their child processes. See `SHARED` in test/support/process.ts.
if (covers) process.env['NODE_DISABLE_COMPILE_CACHE'] = '1'
else process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('node_modules/.cache/hub2mqtt', import.meta.url))

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: 'apart', include: APART } },
      // One worker runs several of these files, because the start of a worker takes 0.4 seconds of CPU time.
      {
        extends: true,
        test: { name: 'shared', include: ['test/**/*.test.ts'], exclude: [...ELSEWHERE, ...APART], isolate: false },
      },
    ],
    // Coverage counts the sources, so with coverage the tests must not start the bundle.
    globalSetup: covers ? [] : ['test/support/program.ts'],
    sequence: { sequencer: Spread },
    // The limit is for tests that hang: on a busy machine with coverage, the longest tests take half of this time.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // The default of one second is too short for several round trips on a busy machine. `until` has the same limit.
    expect: { poll: { timeout: 10_000 } },
    pool: 'forks',
    // Tests mostly wait for brokers and timers. With more workers, leases of a fleet expire too early.
    maxWorkers: 6,
    // Node.js runs the sources directly, as in the program, so that the coverage of both can be added.
    experimental: { viteModuleRunner: false },
    coverage: {
      // Like `v8`, but accepts child processes that are killed.
      provider: 'custom',
      customProviderModule: 'test/support/coverage.ts',
      autoAttachSubprocess: true,
      include: ['src/**/*.ts'],
      // Build tools are not part of the program, and test/page tests the page in a browser.
      exclude: ['src/tooling/build/**', 'src/tooling/docs/**', 'src/web/ui/app/**'],
      reporter: [['text', { skipFull: true }], 'json', 'json-summary'],
      reportOnFailure: true,
      thresholds: {
        lines: 95,
        branches: 90,
        ...Object.fromEntries(SAFETY.map((files) => [files, { perFile: true, lines: 95 }])),
      },
    },
  },
})
