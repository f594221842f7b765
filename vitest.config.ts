import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Their own configuration builds the image first: npm run test:container.
    exclude: ['test/container/**'],
    testTimeout: 20_000,
    hookTimeout: 30_000,
    pool: 'forks',
    // The tests wait for brokers and timers far more than they compute.
    maxWorkers: 4,
  },
})
