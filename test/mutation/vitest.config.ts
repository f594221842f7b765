import { defineConfig } from 'vitest/config'

/** The tests of one module; `main.ts` names them. */
export default defineConfig({
  test: { include: JSON.parse(process.env['MUTATION_TESTS'] ?? '[]'), testTimeout: 20_000 },
})
