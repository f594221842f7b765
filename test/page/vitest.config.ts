import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/page/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // Each test file has a browser and a daemon.
    maxWorkers: 2,
  },
})
