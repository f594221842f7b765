import { defineConfig } from 'vitest/config'

/** The tests that hold the safety modules and need neither broker nor process: a mutant takes a second, not a minute. */
export default defineConfig({
  test: {
    include: [
      'test/bridge/queue.test.ts',
      'test/bridge/replay.test.ts',
      'test/contract/{payload,permissions,templates,topics}.test.ts',
      'test/mqtt/bookkeeping.test.ts',
    ],
    testTimeout: 20_000,
  },
})
