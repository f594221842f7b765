/** The flows of config/node-red in a real Node-RED: `npm run test:node-red`. They need a registry to install it from. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/node-red/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
  },
})
