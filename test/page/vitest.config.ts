import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/page/**/*.test.ts'],
    globalSetup: ['test/page/support/build.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // The files of a worker share a browser and the daemon's code, because both take seconds to start.
    isolate: false,
    maxWorkers: 2,
    experimental: { viteModuleRunner: false },
  },
})
