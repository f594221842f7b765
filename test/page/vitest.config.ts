import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/page/**/*.test.ts'],
    globalSetup: ['test/page/support/build.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // The files of a worker share its browser and the code of the daemon, which both take seconds to start.
    isolate: false,
    maxWorkers: 2,
    experimental: { viteModuleRunner: false },
  },
})
