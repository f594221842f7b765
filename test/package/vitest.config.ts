/** Tests of the npm package as it is installed: `npm run test:package`. They need a registry for its dependencies. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/package/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 180_000,
    pool: 'forks',
  },
})
