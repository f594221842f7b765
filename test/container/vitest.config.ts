/** Tests of the image and the compose files: `npm run test:container`. They take minutes and need a Docker engine. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/container/**/*.test.ts'],
    globalSetup: 'test/container/support/build.ts',
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: 'forks',
    // Run no files in parallel, because they share an engine, and the compose files have fixed ports.
    fileParallelism: false,
    // Tests remove their containers themselves; the library's cleanup would need an additional image.
    env: { TESTCONTAINERS_RYUK_DISABLED: 'true' },
  },
})
