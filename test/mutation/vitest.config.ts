import { defineConfig } from 'vitest/config'

/** `main.ts` sets `MUTATION_TESTS` to the tests of the mutated module. */
export default defineConfig({
  test: { include: JSON.parse(process.env['MUTATION_TESTS'] ?? '[]'), testTimeout: 20_000 },
})
