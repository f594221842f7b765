import { defineConfig } from 'vitest/config'

/** Runs the tests against a real Home Assistant one after the other, because it starts slowly. */
export default defineConfig({
  test: {
    // With PICTURES=1, takes the screenshots for the documentation.
    include: [`test/home-assistant/**/*.${process.env['PICTURES'] === '1' ? 'picture' : 'e2e'}.ts`],
    testTimeout: 120_000,
    // A long limit, because the first run installs Home Assistant.
    hookTimeout: 1_800_000,
    pool: 'forks',
    fileParallelism: false,
  },
})
