/** Tests the flows of `config/node-red` in a real Node-RED: `npm run test:node-red`. Needs a registry for Node-RED. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/node-red/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
  },
})
