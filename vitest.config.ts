import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Where a mistake harms: what a command may do, and what the hub and the broker are believed to say. */
const SAFETY = [
  'src/base/limiter.ts',
  'src/bridge/{dispatcher,replay}.ts',
  'src/contract/{commands,installs,payload,permissions,templates,topics,writes}.ts',
  'src/hub/{client,decode,refusal,written}.ts',
  'src/mqtt/{outbox,retained,sender}.ts',
]

/** They have configurations of their own: npm run test:container, test:package, test:node-red and test:page. */
const ELSEWHERE = ['test/container/**', 'test/package/**', 'test/node-red/**', 'test/page/**']
/** Tests that leave their process as they found it: a worker runs one such file after the other. */
const SHARED = [
  'test/{bridge,contract,guardian,home-assistant,mqtt,observability,web}/**/*.test.ts',
  'test/cluster/rollout/*.test.ts',
  'test/config/reload/*.test.ts',
  'test/emulator/*.test.ts',
  // One sets an environment variable, two listen to what happens to their process.
  'test/config/!(instance).test.ts',
  'test/hub/!(fuzz|manners).test.ts',
]

/** The tests that take longest. A fresh checkout does not know that, and would start some of them last. */
const LONGEST = [
  'chaos/chaos',
  'guardian/months',
  'doctor/set-ups',
  'rollout/owners',
  'cli/program',
  'recording/',
  'cluster/members',
  'rollout/rollout',
  'setup/first-run',
  'guardian/world',
  'doctor/doctor',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification) => {
      const place = LONGEST.findIndex((part) => moduleId.includes(`/${part}`))
      return place === -1 ? LONGEST.length : place
    }
    return (await super.sort(files)).sort((a, b) => placeOf(a) - placeOf(b))
  }
}

const covers = process.argv.some((option) => option.startsWith('--coverage'))
// Compile the sources once for all workers and the children that they start. See `SHARED` in test/support/process.ts.
if (covers) process.env['NODE_DISABLE_COMPILE_CACHE'] = '1'
else process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('node_modules/.cache/hub2mqtt', import.meta.url))

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: 'apart', include: ['test/**/*.test.ts'], exclude: [...ELSEWHERE, ...SHARED] } },
      { extends: true, test: { name: 'shared', include: SHARED, isolate: false } },
    ],
    // It is the sources that are covered.
    globalSetup: covers ? [] : ['test/support/program.ts'],
    sequence: { sequencer: LongestFirst },
    // Only for what hangs: on a busy machine with coverage the longest tests take half of it.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // As `until`: one second, the default, is short for several round trips on a busy machine.
    expect: { poll: { timeout: 10_000 } },
    pool: 'forks',
    // The tests wait for brokers and timers far more than they compute. With seven, leases of the fleet end too soon.
    maxWorkers: 4,
    // Node runs the sources itself, as it runs the program. So the coverage of both can be added up.
    experimental: { viteModuleRunner: false },
    coverage: {
      // As `v8`, but it bears children that are killed.
      provider: 'custom',
      customProviderModule: 'test/support/coverage.ts',
      autoAttachSubprocess: true,
      include: ['src/**/*.ts'],
      // Not in the program; and what runs in browsers, which test/page tries there.
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
