/** Tests of what is shipped, in containers: `npm run test:container`. They take minutes and need a Docker engine. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/container/**/*.test.ts'],
    globalSetup: 'test/container/support/build.ts',
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: 'forks',
    // One engine, and ports that a compose file fixes.
    fileParallelism: false,
    // What a test starts it ends itself; the library's own cleaner is one more image to have.
    env: { TESTCONTAINERS_RYUK_DISABLED: 'true' },
  },
})
